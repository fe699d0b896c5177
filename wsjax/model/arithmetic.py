"""Arithmetic of the model's programs: what processors do fast in place of what they do slowly."""

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Bool, Num

if TYPE_CHECKING:
    Number = Truth = Any
else:
    Number = Num[ArrayLike, "*#rows"]
    """A number: Python's or NumPy's, in a program a traced scalar, or an array over rows; a
    function's arguments broadcast with each other."""
    Truth = Bool[ArrayLike, "*#rows"]
    """Likewise, true or false."""

MANTISSA = 52
ROOT_HALF = int(np.float64(np.sqrt(0.5)).view(np.int64))
LAST_POWER = 21


def is_number(x: Number, number: float) -> bool:
    """Whether x is that very Python number, known while a program is compiled."""
    return isinstance(x, float) and x == number


def scaled(cost: Number, amount: Number) -> Number:
    """cost * amount, and nothing to compute where the cost is the Python number 0."""
    return 0.0 if is_number(cost, 0.0) else cost * amount


def overlapped(exposure: Number, first: Number, second: Number) -> Number:
    """The longer of two times and of the shorter one the share that the longer does not hide."""
    if is_number(exposure, 1.0):
        return first + second
    return jnp.maximum(first, second) + exposure * jnp.minimum(first, second)


@jax.custom_jvp
def _inverse(x: Number) -> Number:
    return abs(1.0 / x)


@_inverse.defjvp
def _(primals, tangents):
    y = _inverse(primals[0])
    return y, -y * y * tangents[0]


def inverse(x: Number) -> Number:
    """1 / x for numbers > 0.

    XLA fuses no quotient that has several users, so that all it depends on would be computed anew
    for each of them; in programs its only user is abs.
    """
    return _inverse(x) if isinstance(x, Tracer) else 1.0 / x


def inverses(*numbers: Number) -> tuple[Number, ...]:
    """`inverse` of each number, in programs in float64 by one quotient, which takes as long as 16
    products: 1 / a = b * 1 / (a b), within a few units in the last place.

    The numbers' product and its inverse must be in the range of float64.
    """
    if all(isinstance(x, Tracer) and x.dtype == jnp.float64 for x in numbers):
        return _inverses(*numbers)
    return tuple(map(inverse, numbers))


@jax.custom_jvp
def _inverses(*numbers: Number) -> tuple[Number, ...]:
    return _parted(numbers, inverse(_product(numbers)))


@_inverses.defjvp
def _(primals, tangents):
    results = _inverses(*primals)
    return results, tuple(-y * y * t for y, t in zip(results, tangents, strict=True))


def _halves(numbers: tuple[Number, ...]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]


def _product(numbers: tuple[Number, ...]) -> Number:
    if len(numbers) == 1:
        return numbers[0]
    left, right = _halves(numbers)
    return _product(left) * _product(right)


def _parted(numbers: tuple[Number, ...], per_all: Number) -> tuple[Number, ...]:
    """The inverse of each number from that of their product."""
    if len(numbers) == 1:
        return (per_all,)
    left, right = _halves(numbers)
    per_left, per_right = per_all * _product(right), per_all * _product(left)
    return _parted(left, per_left) + _parted(right, per_right)


def floor_div(a: Number, per_b: Number) -> Number:
    """floor(a / b) of whole numbers held as floats, |a| below 2**49 (of float32: 2**20); per_b:
    `inverse` of b.

    No whole number is near (a + 1/2) / b.
    """
    return jnp.floor((a + 0.5) * per_b)


def logarithm(x: Number) -> Number:
    """The natural logarithm of numbers > 0 that are not infinite; it has no gradient.

    For XLA's own, a CPU calls a library for each number, which takes as long as 50 products. Here
    x = 2^e y, and log y = 2 artanh t with t = (y - 1) / (y + 1), |t| < 0.172, by its series.
    """
    if not isinstance(x, Tracer) or x.dtype != jnp.float64:
        return jnp.log(x)
    bits = lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits - ROOT_HALF) >> MANTISSA
    y = lax.bitcast_convert_type(bits - (exponent << MANTISSA), jnp.float64)
    t = (y - 1.0) * inverse(y + 1.0)
    series = 0.0
    for odd in range(LAST_POWER, 0, -2):
        series = series * (t * t) + 2.0 / odd
    return exponent * math.log(2) + t * series


def divides(by: Number, number: Number) -> Truth:
    """Whether number / by is whole; whole numbers held as floats, below 2**49."""
    return jnp.floor(number * inverse(by * 1.0) + 0.5) * by == number


def soft_max(softness: Number, a: Number, b: Number) -> Number:
    """A maximum of two numbers >= 0 that is rounded where they are close.

    (a + b + sqrt((a - b)^2 + 4 softness a b)) / 2: max(a, b) for softness 0, a + b for 1.
    """
    if is_number(softness, 0.0):
        return jnp.maximum(a, b)
    square = (a - b) ** 2 + 4.0 * softness * a * b
    least = float(jnp.finfo(jnp.result_type(square, float)).tiny)
    root = jnp.sqrt(jnp.maximum(square, least)) - least**0.5
    return 0.5 * (a + b + root)
