"""The field's words for element types, layouts and the like, as ours: one table for all readers.

Case, separators, name spaces (`torch.`, `tl.`, `cutlass::`, `CUDA_R_`, `HIP_R_`) and the endings
`_r` of the BLAS libraries and `_t` of C++ count for nothing.
"""

import re
from functools import lru_cache

from wsjax.schema import COLUMNS

_SYNONYMS = {
    "fp32": "f32 fp32 float float32 single 32f",
    "tf32": "tf32 tensorfloat32 xf32 floattf32",
    "bf16": "bf16 bfloat16 bfloat 16bf nvbfloat16",
    "fp16": "f16 fp16 half float16 16f",
    "fp8_e4m3": "e4m3 f8 fp8 float8 w8a8fp8 fp8w8a8 fp8static fp8e4nv fp8e4b8 f8fnuz",
    "fp8_e5m2": "e5m2 bf8 fp8e5 fp8e5b16 bf8fnuz",
    "int8": "s8 i8 int8 8i char",
}
_FLOAT8 = re.compile(r"(?:nv)?(?:float|fp|fe|f|8f)?8?e(4m3|5m2)(?:fn|fnuz)?")
_NAMESPACE = re.compile(
    r"^(?:(?:torch|triton|tl|jax|jnp|numpy|np|ml_dtypes|cutlass|cute)[.:]+|(?:cuda|hip|hipblas)_r_)",
    re.I,
)
_DTYPES = {word: ours for ours, words in _SYNONYMS.items() for word in words.split()}
_L2 = {"flushed": "cold", "flush": "cold", "hot": "warm"}
_ACCUMULATORS = {"fp32": "f32", "fp16": "f16", "tf32": "f32"}
BLAS_LAYOUTS = {"nn": "tt", "nt": "tn", "tn": "nt", "tt": "nn"}
"""Column-major words to ours: their t is A stored [M, K], their n is B stored [N, K]."""


@lru_cache(10_000)
def dtype(word: object) -> object:
    """Our word for an element type; what has none stays as it is."""
    text = str(word).strip().strip("'\"")
    key = re.sub(r"[^a-z0-9]", "", _NAMESPACE.sub("", text).lower())
    for known in (key, key[:-1] if key[-1:] in ("r", "t") else key):
        if known in _DTYPES:
            return _DTYPES[known]
        if match := _FLOAT8.fullmatch(known):
            return f"fp8_e{match[1]}"
    return word


def operands(*types: object) -> str:
    """Our word for the type of A and B; where they differ, both, which is none of ours."""
    return " and ".join(dict.fromkeys(str(dtype(word)) for word in types))


def accumulator(word: object) -> str:
    """`f32`, `f32_fast` (sums of fp8 products at the MMA's own precision), `f32_promoted` (added up
    in f32 registers) or `f16`; of what is none of them, the word itself."""
    text = str(word).strip().lower()
    return _ACCUMULATORS.get(str(dtype(text)), text)


@lru_cache(10_000)
def ours(column: str, word: object) -> object:
    """A word of a configuration column as we spell it, or as it is if it is none of ours."""
    text = word.strip() if isinstance(word, str) else word
    if text in COLUMNS[column].choices or not isinstance(text, str):
        return text
    if column.startswith("dtype"):
        return dtype(text)
    low = text.lower()
    return _L2.get(low, low) if column in ("schedule", "write_back", "l2_state") else text
