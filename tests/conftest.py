"""All numeric tests run in float64 with strict promotion, as the product's spine does.

Compiled programs are kept, as the command line keeps them: workers, the commands that tests start,
and the next run share them. Calls of the model's functions are checked against their annotations
while programs are traced, which changes no program.
"""

import os
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
KEPT = {
    "jax_compilation_cache_dir": os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED)),
    "jax_persistent_cache_min_compile_time_secs": 0.2,
}
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

SMALL_SPACE = """[columns]
block_m = [64, 128]
block_n = [64, 128, 256]
block_k = [32, 64, 128]
stages = [1, 2, 3]
dma_warps = [1, 2]
schedule = ["persistent", "pingpong"]
"""
"""A space of 216 kernels, which the programs of the other tests take in one piece."""

install_import_hook("wsjax.model", "beartype.beartype")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "standard")
for name, value in KEPT.items():
    jax.config.update(name, value)


@pytest.fixture(scope="module")
def small_space(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.toml"
    path.write_text(SMALL_SPACE)
    return path


@pytest.fixture(scope="module")
def space_file(tmp_path_factory) -> Path:
    """Where a test of spaces may write one."""
    return tmp_path_factory.mktemp("spaces") / "space.toml"


def pytest_configure(config: pytest.Config) -> None:
    """A damaged entry of the cache is compiled again."""
    config.addinivalue_line("filterwarnings", "ignore:.*persistent compilation cache")
