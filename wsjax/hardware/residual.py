"""The learned correction of a machine's times, as its file holds it: [residual].

[residual]
inputs = ["m", "n", ...]      # names of `wsjax.model.residual.features`
widths = [64, 32]             # of the two hidden layers
numbers = "..."               # `Network`, float32, in base64
"""

import base64
import binascii
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wsjax.errors import nearest

LESS, MORE = 0.2, 0.3
"""The most that a correction takes from and adds to the logarithm of a time. The less it may take,
the fewer rows a search for the best must look at."""

FEATURES = (
    *("m", "n", "k", "batch", "block_m", "block_n", "block_k", "stages", "cluster_m", "cluster_n"),
    *("in_bytes", "smem_bytes", "touched_bytes", "waves", "active_last", "ctas_per_sm", "group"),
    *("inside_bytes", "dram_first_bytes"),
    *("first_load_us", "full_load_us", "full_compute_us", "last_epilogue_us"),
    *("unit_k_tiles", "splits", "time_us"),
    *("k_tail", "m_tail", "n_tail", "last_wave", "miss_later", "fill"),
    *("promoted", "serial", "pingpong", "cooperative", "mma_in_flight", "write_back", "warm"),
    *("math_warps", "ring_holds_all", "c_pitch_32", "a_pitch_64", "a_pitch_128", "k_page"),
    *("streamed", "unordered"),
)
"""What `wsjax.model.residual.features` knows of a row, in its order."""


class Network(NamedTuple):
    """What `wsjax.model.residual` computes with; float32, F inputs, hidden layers of H and G."""

    mean: Any
    """Of each input over the fitted rows, (F,)."""
    scale: Any
    """1 / standard deviation of each input, (F,)."""
    weights_1: Any
    """(F, H)."""
    bias_1: Any
    """(H,)."""
    weights_2: Any
    """(H, G)."""
    bias_2: Any
    """(G,)."""
    weights_3: Any
    """(G,)."""
    bias_3: Any
    """()."""


def shapes(inputs: int, widths: tuple[int, ...]) -> Network:
    """The shape of each array."""
    first, second = widths
    return Network(
        (inputs,), (inputs,), (inputs, first), (first,), (first, second), (second,), (second,), ()
    )


@dataclass(frozen=True)
class Residual:
    """A network in one value that compares and hashes, as programs need it; `numbers`: its arrays
    one after the other, float32, little-endian."""

    inputs: tuple[str, ...]
    widths: tuple[int, ...]
    numbers: bytes

    @cached_property
    def network(self) -> Network:
        """Its arrays."""
        sizes = shapes(len(self.inputs), self.widths)
        flat = np.frombuffer(self.numbers, "<f4")
        ends = np.cumsum([int(np.prod(shape)) for shape in sizes])
        parts = np.split(flat, ends[:-1])
        return Network(*(x.reshape(shape) for x, shape in zip(parts, sizes, strict=True)))

    @property
    def table(self) -> dict[str, Any]:
        """The entries of [residual]."""
        numbers = base64.b64encode(self.numbers).decode()
        return {"inputs": [*self.inputs], "widths": [*self.widths], "numbers": numbers}


@dataclass(frozen=True)
class Head:
    """A residual and where it holds: `span` as (column, least, greatest) or (column, codes)."""

    residual: Residual
    span: tuple[tuple[Any, ...], ...]


def residual_of(inputs: tuple[str, ...], network: Network) -> Residual:
    """The value of a network."""
    widths = (len(network.bias_1), len(network.bias_2))
    flat = [np.asarray(x, "<f4").reshape(-1) for x in network]
    return Residual(inputs, widths, np.concatenate(flat).tobytes())


def read_residual(table: dict[str, Any]) -> Residual:
    """A residual from the entries of [residual], each of which is checked; ValueError says why they
    make none."""
    if missing := {"inputs", "widths", "numbers"} - table.keys():
        raise ValueError(f"{', '.join(sorted(missing))}: missing")
    inputs, widths = tuple(table["inputs"]), tuple(table["widths"])
    if unknown := [name for name in inputs if name not in FEATURES]:
        raise ValueError(f"inputs: {unknown[0]}: unknown{nearest(unknown[0], FEATURES)}")
    try:
        numbers = base64.b64decode("".join(table["numbers"].split()), validate=True)
    except binascii.Error:
        raise ValueError("numbers: not base64") from None
    needed = 4 * sum(int(np.prod(shape)) for shape in shapes(len(inputs), widths))
    if len(numbers) != needed:
        raise ValueError(f"numbers: {len(numbers):,} bytes, where such a network has {needed:,}")
    if not np.isfinite(np.frombuffer(numbers, "<f4")).all():
        raise ValueError("numbers: not all are finite")
    return Residual(inputs, widths, numbers)
