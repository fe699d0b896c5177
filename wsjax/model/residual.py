"""What is learned on top of the recurrences: a small network on the model's own intermediates.

    time' = time exp(o),   o = LIMIT tanh((w3 . silu(W2 silu(W1 z + b1) + b2) + b3) / LIMIT)

z are the `features` of one row, each standardised by its mean and deviation over the rows that the
network was fitted to, and clipped to +-CLIP: problem, tile and waves, the bytes and durations that
the recurrences are fed, and the time that these give.

What single terms, constants of kernels and other losses do not catch is an interaction of kernel,
waves and k; the network catches half of it. It is no part of the recurrences: timelines and replay
never see it, and it is off outside the span of the table that it was fitted to (`wsjax.engine`).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from wsjax.hardware import LIMIT, Network
from wsjax.model.arithmetic import Number, Truth, inverse
from wsjax.model.closed import slopes
from wsjax.model.durations import Machine, ctas_per_sm, kernel
from wsjax.model.events import COOPERATIVE, PERSISTENT, PINGPONG, SERIAL, isolate
from wsjax.model.raster import Raster, raster
from wsjax.model.traffic import Traffic, traffic
from wsjax.schema import PROMOTED, Configuration, smem_bytes

CLIP = 4.0
"""How many deviations from its mean a feature counts as, at most."""
LEAST = 1e-4
"""What smaller magnitudes count as, before their logarithm is taken."""
PAGE_BYTES = 4096


def correction(
    network: Network, inputs: tuple[str, ...], c: Configuration, machine: Machine, time_us: Number
) -> Float[Array, ""]:
    """o of one configuration (numbers as floats) whose recurrences take `time_us`; float32."""
    named = features(c, machine, time_us)
    columns = [jnp.asarray(named[name]).astype(jnp.float32) for name in inputs]
    z = jnp.stack(lax.optimization_barrier(columns))
    z = jnp.clip((z - network.mean) * network.scale, -CLIP, CLIP)
    return learned(network, z)


def learned(network: Network, z: Float[Array, "*rows inputs"]) -> Float[Array, "*rows"]:
    """o of standardised features."""
    hidden = jax.nn.silu(z @ network.weights_1 + network.bias_1)
    hidden = jax.nn.silu(hidden @ network.weights_2 + network.bias_2)
    return LIMIT * jnp.tanh((hidden @ network.weights_3 + network.bias_3) / LIMIT)


def features(c: Configuration, machine: Machine, time_us: Number) -> dict[str, Number | Truth]:
    """What the network sees of a row, by name: log2 of sizes, shares and flags.

    More of the model's durations and bytes lower the error no further; each costs a row as much as
    a good part of the model.
    """
    r = raster(c, machine.facts, ctas_per_sm(c, machine))
    t = traffic(c, r, machine.parameters, machine.in_bytes, machine.out_bytes)
    whole = kernel(c, machine)
    p, repeats = isolate(whole.full)
    q = slopes(p)
    sizes = _sizes(c, machine, r, t)
    sizes |= {
        "first_load_us": whole.first.load_a_us + whole.first.load_b_us,
        "full_load_us": whole.full.load_a_us + whole.full.load_b_us,
        "full_compute_us": whole.full.compute_us,
        "time_us": time_us,
        "flop_per_us": sizes["flop"] / time_us,
    }
    shares = {
        "k_tail": 1.0 - c.k * r.per.block_k * r.per.k_tiles,
        "m_tail": 1.0 - c.m * r.per.block_m * r.per.tiles_m,
        "n_tail": 1.0 - c.n * r.per.block_n * r.per.tiles_n,
        "last_wave": r.active_last * r.per.active,
        "miss_first": t.miss_first,
        "miss_later": t.miss_later,
        "fill": (q.landing + p.load_latency_us) * repeats * inverse(time_us),
        "latency_bound": q.window_gain > 0,
    }
    logs = {
        name: jnp.log2(jnp.maximum(jnp.asarray(x, jnp.float32), LEAST)) for name, x in sizes.items()
    }
    return logs | shares | _flags(c, machine, r)


def _sizes(c: Configuration, machine: Machine, r: Raster, t: Traffic) -> dict[str, Number | Truth]:
    a_and_b_bytes = (c.m + c.n) * c.k * machine.in_bytes
    return {
        "m": c.m,
        "n": c.n,
        "k": c.k,
        "block_m": c.block_m,
        "block_n": c.block_n,
        "block_k": c.block_k,
        "stages": c.stages,
        "smem_bytes": smem_bytes(c, machine.facts, machine.in_bytes, machine.out_bytes),
        "tiles_m": r.tiles_m,
        "tiles_n": r.tiles_n,
        "k_tiles": r.k_tiles,
        "tiles": r.tiles,
        "waves": r.waves,
        "ctas_per_sm": r.ctas_per_sm,
        "active": r.active,
        "active_last": r.active_last,
        "fractional_waves": r.tiles * r.per.active,
        "group": r.group,
        "touched_bytes": (a_and_b_bytes + c.m * c.n * machine.out_bytes) * c.batch,
        "flop": 2.0 * c.m * c.n * c.k * c.batch,
        "in_bytes": machine.in_bytes,
        "batch": c.batch,
        "cluster_m": c.cluster_m,
        "cluster_n": c.cluster_n,
        "inside_bytes": t.inside_bytes,
        "stored_bytes": t.stored_bytes,
        "dram_first_bytes": t.dram_first_bytes,
    }


def _flags(c: Configuration, machine: Machine, r: Raster) -> dict[str, Number | Truth]:
    def whole(elements: Number, bytes_: int, element_bytes: Number) -> Truth:
        lines = elements * element_bytes * (1.0 / bytes_)
        return jnp.floor(lines) == lines

    return {
        "promoted": c.accum == PROMOTED,
        "serial": c.schedule == SERIAL,
        "persistent": c.schedule == PERSISTENT,
        "pingpong": c.schedule == PINGPONG,
        "cooperative": c.schedule == COOPERATIVE,
        "mma_in_flight": c.mma_in_flight,
        "write_back": c.write_back,
        "warm": c.l2_state,
        "math_warps": c.math_warps >= 8,
        "one_row_group": r.group == 1,
        "m_fastest": r.group >= r.tiles_m,
        "ring_holds_all": r.k_tiles <= c.stages,
        "two_waves": r.waves == 2,
        "c_pitch_32": whole(c.n, 32, machine.out_bytes),
        "a_pitch_32": whole(c.k, 32, machine.in_bytes),
        "a_pitch_64": whole(c.k, 64, machine.in_bytes),
        "a_pitch_128": whole(c.k, 128, machine.in_bytes),
        "k_page": whole(c.k, PAGE_BYTES, machine.in_bytes),
    }
