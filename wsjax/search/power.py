"""The mean power of a kernel, on machines whose file has an energy term.

    power_w = idle_w + (flop_pj * flop + byte_pj * bytes) / time

with the flop that the tiles compute and the bytes that they load and store, edges filled up. The
file says it in [energy]: `idle_w` (W, drawn whatever runs), `flop_pj` and `byte_pj` (pJ a flop and
a byte); what is left out is 0.
"""

from typing import Any

import numpy as np

from wsjax.errors import InputError
from wsjax.hardware import Hardware
from wsjax.schema import DTYPE_BYTES, Configuration, shown


def power_w(c: Configuration, hardware: Hardware, time_us: np.ndarray) -> np.ndarray:
    """The mean power of each kernel, in W; inf where it takes no time."""
    sizes = np.asarray(DTYPE_BYTES, dtype=float)
    tiles = np.ceil(c.m / c.block_m) * np.ceil(c.n / c.block_n) * c.batch
    steps = tiles * np.ceil(c.k / c.block_k)
    area = c.block_m * 1.0 * c.block_n
    flop = steps * 2.0 * area * c.block_k
    loaded = steps * (c.block_m + c.block_n) * c.block_k * sizes[c.dtype_in]
    stored = tiles * area * sizes[c.dtype_out]
    energy = hardware.energy
    spent_pj = energy.get("flop_pj", 0.0) * flop + energy.get("byte_pj", 0.0) * (loaded + stored)
    with np.errstate(divide="ignore", invalid="ignore"):
        return energy.get("idle_w", 0.0) + np.nan_to_num(spent_pj * 1e-6 / time_us, posinf=np.inf)


def check_power(hardware: Hardware, max_power_w: Any) -> float:
    """A limit of power that the machine can be held to. InputError where there is none."""
    number = isinstance(max_power_w, int | float) and not isinstance(max_power_w, bool)
    if not number or not 0 < max_power_w < np.inf:
        raise InputError(f"max_power_w: expected watts above 0, not {shown(max_power_w)}")
    if not hardware.energy:
        raise InputError(
            f"max_power_w: the hardware file of {hardware.name} has no energy term; give it "
            "[energy] with idle_w, flop_pj and byte_pj, or leave the limit out"
        )
    return float(max_power_w)
