"""All numeric tests run in float64 with strict promotion, as the product's spine does."""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "standard")
