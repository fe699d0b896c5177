"""What is learned on top of the recurrences: a small network on the model's own intermediates.

    time' = time exp(o),   o = limit tanh(x / limit),   limit = LESS if x < 0 else MORE,
    x = w3 . silu(W2 silu(W1 z + b1) + b2) + b3

z are the `features` of one row, each standardised by its mean and deviation over the rows that the
network was fitted to, and clipped to +-CLIP: problem, tile and waves, the bytes and durations that
the recurrences are fed, and the time that these give. All of it is in float32.

What single terms, constants of kernels and other losses do not catch is an interaction of kernel,
waves and k; the network catches half of it. It is no part of the recurrences: timelines and replay
never see it, and it is off outside the span of the table that it was fitted to (`wsjax.engine`).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from wsjax.hardware import LESS, MORE, Network
from wsjax.model.arithmetic import Number, Truth, inverse
from wsjax.model.closed import closed, slopes
from wsjax.model.durations import Machine, kernel, moved
from wsjax.model.events import COOPERATIVE, PINGPONG, SERIAL, isolate
from wsjax.model.raster import Raster
from wsjax.model.traffic import Traffic
from wsjax.schema import PROMOTED, Configuration, smem_bytes

CLIP = 4.0
"""How many deviations from its mean a feature counts as, at most."""
LEAST = 1e-4
"""What smaller magnitudes count as, before their logarithm is taken."""
PAGE_BYTES = 4096
DURATIONS = (
    *("load_a_us", "load_b_us", "load_startup_us", "load_latency_us", "compute_us"),
    "epilogue_us",
)
"""Of a wave's pipeline, for teachers."""
_product = partial(jnp.matmul, precision=lax.Precision.HIGHEST)
"""In float32 on accelerators too, which else round to fewer digits."""


def correction(
    network: Network, inputs: tuple[str, ...], c: Configuration, machine: Machine, time_us: Number
) -> Float[Array, ""]:
    """o of one configuration whose recurrences take `time_us`; all numbers float32."""
    named = features(c, machine, time_us)
    columns = [jnp.asarray(named[name]).astype(jnp.float32) for name in inputs]
    z = jnp.stack(lax.optimization_barrier(columns))
    z = jnp.clip((z - network.mean) * network.scale, -CLIP, CLIP)
    return learned(network, z)


def learned(network: Network, z: Float[Array, "*rows inputs"]) -> Float[Array, "*rows"]:
    """o of standardised features."""
    hidden = jax.nn.silu(_product(z, network.weights_1) + network.bias_1)
    hidden = jax.nn.silu(_product(hidden, network.weights_2) + network.bias_2)
    x = _product(hidden, network.weights_3) + network.bias_3
    limit = jnp.where(x < 0, jnp.float32(LESS), jnp.float32(MORE))
    return limit * jnp.tanh(x / limit)


def features(c: Configuration, machine: Machine, time_us: Number) -> dict[str, Number | Truth]:
    """What the network sees of a row, by name: log2 of sizes, shares and flags.

    More of the model's durations and bytes lower its error hardly further; each costs a row as much
    as a good part of the model.
    """
    units, r, t = moved(c, machine)
    whole = kernel(c, machine)
    p, repeats = isolate(whole.full)
    q = slopes(p)
    sizes = {
        "m": c.m,
        "n": c.n,
        "k": c.k,
        "batch": c.batch,
        "block_m": c.block_m,
        "block_n": c.block_n,
        "block_k": c.block_k,
        "stages": c.stages,
        "cluster_m": c.cluster_m,
        "cluster_n": c.cluster_n,
        "in_bytes": machine.in_bytes,
        "smem_bytes": smem_bytes(c, machine.facts, machine.in_bytes, machine.out_bytes),
        "touched_bytes": (
            ((c.m + c.n) * c.k * machine.in_bytes + c.m * c.n * machine.out_bytes) * c.batch
        ),
        "waves": r.waves,
        "active_last": r.active_last,
        "ctas_per_sm": r.ctas_per_sm,
        "group": r.group,
        "inside_bytes": t.inside_bytes,
        "dram_first_bytes": t.dram_first_bytes,
        "first_load_us": whole.first.load_a_us + whole.first.load_b_us,
        "full_load_us": whole.full.load_a_us + whole.full.load_b_us,
        "full_compute_us": whole.full.compute_us,
        "last_epilogue_us": whole.last.epilogue_us,
        "unit_k_tiles": whole.full.k_tiles,
        "splits": units.splits if units else 1.0,
        "time_us": time_us,
    }
    shares = {
        "k_tail": 1.0 - c.k * r.per.block_k * r.per.k_tiles,
        "m_tail": 1.0 - c.m * r.per.block_m * r.per.tiles_m,
        "n_tail": 1.0 - c.n * r.per.block_n * r.per.tiles_n,
        "last_wave": r.active_last * r.per.active,
        "miss_later": t.miss_later,
        "fill": (q.landing + p.load_latency_us) * repeats * inverse(time_us),
    }
    flags = _flags(c, machine, r) | {
        "streamed": units.stream.waves > 0 if units else False,
        "unordered": units.configuration.reduction > 0 if units else False,
    }
    return {name: _log2(x) for name, x in sizes.items()} | shares | flags


def intermediates(c: Configuration, machine: Machine, time_us: Number) -> dict[str, Number | Truth]:
    """The `features` and what else the model computes on its way: what teachers see, of whom a
    network that sees the `features` alone then learns (`wsjax.fit.residual`)."""
    _, r, t = moved(c, machine)
    whole = kernel(c, machine)
    p, repeats = isolate(whole.full)
    q, outcome = slopes(p), closed(p)[0]
    sizes = {
        "tiles_m": r.tiles_m,
        "tiles_n": r.tiles_n,
        "k_tiles": r.k_tiles,
        "tiles": r.tiles,
        "active": r.active,
        "fractional_waves": r.tiles * r.per.active,
        "flop_per_us": c.m * c.n * c.k * c.batch * inverse(time_us),
        "launch_us": whole.launch_us,
    }
    sizes |= _fields(t, *Traffic._fields)
    for name, wave in (("first", whole.first), ("full", whole.full), ("last", whole.last)):
        sizes |= {f"{name} {field}": x for field, x in _fields(wave, *DURATIONS).items()}
    sizes |= _fields(q, "landing", "load", "period", "spare", "ring_gain", "window_gain")
    shares = {
        "math_wait": outcome.math_wait_us * repeats * inverse(time_us),
        "dma_wait": outcome.dma_wait_us * repeats * inverse(time_us),
        "latency_bound": q.window_gain > 0,
        "two_waves": r.waves == 2,
        "one_row_group": r.group == 1,
        "m_fastest": r.group >= r.tiles_m,
        "a_pitch_32": _whole_lines(c.k, 32, machine.in_bytes),
    }
    logs = {name: _log2(abs(x)) for name, x in sizes.items()}
    return logs | shares | features(c, machine, time_us)


def _fields(numbers: Any, *names: str) -> dict[str, Number]:
    return {name: getattr(numbers, name) for name in names}


def _log2(x: Number) -> Float[Array, "*#rows"]:
    return jnp.log2(jnp.maximum(jnp.asarray(x, jnp.float32), LEAST))


def _flags(c: Configuration, machine: Machine, r: Raster) -> dict[str, Number | Truth]:
    return {
        "promoted": c.accum == PROMOTED,
        "serial": c.schedule == SERIAL,
        "pingpong": c.schedule == PINGPONG,
        "cooperative": c.schedule == COOPERATIVE,
        "mma_in_flight": c.mma_in_flight,
        "write_back": c.write_back,
        "warm": c.l2_state,
        "math_warps": c.math_warps >= 8,
        "ring_holds_all": r.k_tiles <= c.stages,
        "c_pitch_32": _whole_lines(c.n, 32, machine.out_bytes),
        "a_pitch_64": _whole_lines(c.k, 64, machine.in_bytes),
        "a_pitch_128": _whole_lines(c.k, 128, machine.in_bytes),
        "k_page": _whole_lines(c.k, PAGE_BYTES, machine.in_bytes),
    }


def _whole_lines(elements: Number, line_bytes: int, element_bytes: Number) -> Truth:
    lines = elements * element_bytes * (1.0 / line_bytes)
    return jnp.floor(lines) == lines
