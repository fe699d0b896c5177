"""The timing model: one configuration on one machine -> its time.

**What it is for.** A configuration (`wsjax.schema.Configuration`, numbers as floats) and a machine
(`Machine`: facts and parameters as numbers) become the durations of one step of one CTA, and these
the kernel's time, MATH's and the DMA warps' waits. Every function takes one configuration;
`wsjax.engine` compiles it, vmapped, for millions. All parameters are differentiable.

**The equations**, in the order in which a configuration passes them:

1. `splits`: where k is divided among CTAs, the units that these take, and their reductions.
   `raster`: output tiles, waves and k-tiles; which tiles of A and B the CTAs of a wave share.
2. `traffic`: the bytes of a step at the SM, in L2 and in DRAM, and the share that misses L2.
3. `durations`: `kernel` makes a `Pipeline` of them for the full, the first and the last wave:
   load_a, load_b, load_startup, load_latency, compute, epilogue, in µs.
4. `events`: the recurrences, which are the definition (`step`; `played` keeps every event):

       acquire[g]  = max(done[g-1], released[g-D])      D: stages of the ring
       done[g]     = acquire[g] + 2 load_startup + load_a + load_b
       ready[g]    = done[g] + load_latency
       start[g]    = max(ready[g], turn[g]);  end[g] = start[g] + compute
       released[g] = end[g]                              (later with an MMA in flight)

   with turn[g] = end[g-1] inside an output tile; behind one the epilogue counts, by the schedule.
5. `closed`: the same in O(1), with a proof or none for each row; and a lower bound for all.
   `periodic`: the same by jumps over whole periods, for the rows that have no proof.
   What jumps leave unfinished is scanned (`simulate_queue`).
6. `exchange_us`: the first wave's tile for a cold one, the last wave's for a partial one.

Then time = launch + end of the recurrences + exchange. `bounds` bounds whole families of
configurations from below, for sweeps that keep only the fastest.

**What calls it.** `wsjax.engine` (all of it), `wsjax.timelines` (`kernel`, `played`), the encoding
of events for Z3 in `wsjax.search` (`kernel`), sweeps that keep the fastest rows (`bounds`).

**To add a term**, such as "loads are slower when m is odd":

1. `wsjax/hardware/parameters.py`: a field of `Parameters`; its default is the value that makes
   the term vanish, and its annotation says unit, meaning, and a typical value as a weak prior.
   Hardware files, sweeps, calibration, ablation and `explain` know it from there.
   `family=True` if it belongs to how a kernel is written.
2. `durations` or `traffic`: the term, through `scaled(p.my_cost, amount)` or behind
   `is_number(p.my_cost, neutral)`, so that machines without it compile and run as before; and a
   line in the module's equations. A duration that two waves have differently goes through
   `_step`, which is called for each wave.
3. `tests/model/test_physics.py`: what the term does, and that the neutral value changes no bit.

`bounds` takes durations at their least. If the term makes something *shorter*, or depends on a
column in `RELAXED`, read its docstring: `tests/model/test_bounds.py` draws all parameters and
fails where the bound is no bound. A term stays only if held-out error falls: `wsjax calibrate`,
then `wsjax.ablate`.

**What to read next.** `wsjax.model.events`, then `wsjax.model.durations`; `wsjax.engine` for how it
is compiled; `wsjax.timelines` for its events one by one.
"""

from wsjax.model.arithmetic import divides
from wsjax.model.bounds import RELAXED, Family, family_bound_us
from wsjax.model.closed import Slopes, exchange_us, isolated, lower_bound, slopes
from wsjax.model.closed import closed as closed_form
from wsjax.model.costs import Machine
from wsjax.model.durations import ctas_per_sm, kernel
from wsjax.model.events import (
    COOPERATIVE,
    DURATIONS,
    MAX_STAGES,
    PERSISTENT,
    PINGPONG,
    SERIAL,
    Events,
    Outcome,
    Pipeline,
    isolate,
    played,
    queued,
    simulate_queue,
    start_carry,
)
from wsjax.model.periodic import solve
from wsjax.model.raster import raster as raster_of
from wsjax.model.residual import CLIP, correction, features, intermediates
from wsjax.model.residual import learned as learned_log

__all__ = [
    "CLIP",
    "COOPERATIVE",
    "DURATIONS",
    "MAX_STAGES",
    "PERSISTENT",
    "PINGPONG",
    "RELAXED",
    "SERIAL",
    "Events",
    "Family",
    "Machine",
    "Outcome",
    "Pipeline",
    "Slopes",
    "closed_form",
    "correction",
    "ctas_per_sm",
    "divides",
    "exchange_us",
    "family_bound_us",
    "features",
    "intermediates",
    "isolate",
    "isolated",
    "kernel",
    "learned_log",
    "lower_bound",
    "played",
    "queued",
    "raster_of",
    "simulate_queue",
    "slopes",
    "solve",
    "start_carry",
]
