"""Arithmetic of the model's programs: what processors do fast in place of what they do slowly."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

GUESSES = {
    jnp.dtype(jnp.float32): np.int32(0x7EF311C7),
    jnp.dtype(jnp.float64): np.int64(0x7FDE6238502484BA),
}
"""Less the bits of x: those of 1 / x, within an eighth."""
MANTISSA = 52
ROOT_HALF = int(np.float64(np.sqrt(0.5)).view(np.int64))
LAST_POWER = 21


def is_number(x, number: float) -> bool:
    """Whether x is that very Python number, known while a program is compiled."""
    return isinstance(x, float) and x == number


def scaled(cost, amount):
    """cost * amount, and nothing to compute where the cost is the Python number 0."""
    return 0.0 if is_number(cost, 0.0) else cost * amount


@jax.custom_jvp
def _inverse(x):
    guess = GUESSES[x.dtype]
    y = lax.bitcast_convert_type(guess - lax.bitcast_convert_type(x, guess.dtype), x.dtype)
    for _ in range(2):
        error = 1.0 - x * y
        y = y + y * (error + error * error)
    return y + y * (1.0 - x * y)


@_inverse.defjvp
def _(primals, tangents):
    y = inverse(primals[0])
    return y, -y * y * tangents[0]


def inverse(x):
    """1 / x, give or take a few units in the last place, for numbers > 0 that are not infinite.

    In compiled programs by Newton's method: XLA fuses no quotient that has several users, so that
    all it depends on is computed anew for each, and a quotient takes as long as 16 products.
    """
    if not isinstance(x, Tracer) or x.dtype not in GUESSES:
        return 1.0 / x
    return _inverse(x)


def floor_div(a, per_b):
    """floor(a / b) of whole numbers held as floats, |a| below 2**49 (of float32: 2**20); per_b:
    `inverse` of b.

    No whole number is near (a + 1/2) / b.
    """
    return jnp.floor((a + 0.5) * per_b)


def logarithm(x):
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


def divides(by, number):
    """Whether number / by is whole; whole numbers held as floats, below 2**49."""
    return jnp.floor(number * inverse(by * 1.0) + 0.5) * by == number


def soft_max(softness, a, b):
    """A maximum of two numbers >= 0 that is rounded where they are close.

    (a + b + sqrt((a - b)^2 + 4 softness a b)) / 2: max(a, b) for softness 0, a + b for 1.
    """
    if is_number(softness, 0.0):
        return jnp.maximum(a, b)
    if is_number(softness, 1.0):
        return a + b
    square = (a - b) ** 2 + 4.0 * softness * a * b
    some = square > 0
    root = jnp.where(some, jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)
    return 0.5 * (a + b + root)
