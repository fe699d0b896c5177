"""Cases for property tests: in bulk from a seed, or drawn (and shrunk) by hypothesis."""

import math
from collections.abc import Callable
from random import Random
from typing import Literal

from hypothesis import strategies as st
from reference import GROUPS, Case

Kind = Literal["realistic", "ties", "wild"]
SCHEDULES = tuple(GROUPS)
WHOLE = st.integers(0, 6)
# Smallest and largest k_tiles, output tiles and stages of each kind.
SIZES: dict[Kind, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "realistic": ((4, 256), (1, 60), (2, 8)),
    "ties": ((1, 40), (1, 40), (1, 12)),
    "wild": ((1, 300), (1, 100), (1, 32)),
}


def random_cases(seed: int, count: int, kind: Kind, max_steps: int | None = None) -> list[Case]:
    """`count` cases of one kind, the same for the same arguments.

    realistic: durations log-uniform around 1 us; ties: small whole numbers, zeros among them;
    wild: uniform, each exactly zero one time in ten. Sizes are log-uniform whole numbers, so that
    small ones are well covered; `max_steps` caps k_tiles * tiles by drawing both anew.
    """
    rng = Random(seed)
    k_tiles_range, tiles_range, stages_range = SIZES[kind]
    if max_steps is not None and max_steps < k_tiles_range[0] * tiles_range[0]:
        raise ValueError(f"no {kind} case has at most {max_steps} steps")
    cases = []
    for _ in range(count):
        k_tiles, tiles = log_size(rng, *k_tiles_range), log_size(rng, *tiles_range)
        while max_steps is not None and k_tiles * tiles > max_steps:
            k_tiles, tiles = log_size(rng, *k_tiles_range), log_size(rng, *tiles_range)
        cases.append(
            Case(
                k_tiles,
                tiles,
                log_size(rng, *stages_range),
                *DURATIONS[kind](rng),
                schedule=rng.choice(SCHEDULES),
                dma_warps=rng.randint(1, 2),
                mma_in_flight=rng.randint(0, 1),
            )
        )
    return cases


def log_size(rng: Random, least: int, most: int) -> int:
    """A whole number in least..most, log-uniform."""
    return min(most, int(log_uniform(rng, least, most + 1)))


def log_uniform(rng: Random, least: float, most: float) -> float:
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def realistic_durations(rng: Random) -> tuple[float, ...]:
    load = log_uniform(rng, 0.3, 3)
    share_a = rng.uniform(0.1, 0.9)
    startup = log_uniform(rng, 0.01, 0.3)
    latency = log_uniform(rng, 0.3, 6)
    compute = log_uniform(rng, 0.3, 3)
    epilogue = log_uniform(rng, 0.5, 10)
    return share_a * load, (1 - share_a) * load, startup, latency, compute, epilogue


def tied_durations(rng: Random) -> tuple[float, ...]:
    return tuple(rng.randint(0, most) for most in (3, 3, 2, 6, 4, 8))


def wild_durations(rng: Random) -> tuple[float, ...]:
    limits = (10, 10, 3, 60, 10, 40)
    return tuple(0.0 if rng.random() < 0.1 else rng.uniform(0, most) for most in limits)


DURATIONS: dict[Kind, Callable[[Random], tuple[float, ...]]] = {
    "realistic": realistic_durations,
    "ties": tied_durations,
    "wild": wild_durations,
}


def small_cases(durations: st.SearchStrategy = WHOLE) -> st.SearchStrategy[Case]:
    """Cases of at most 64 steps, whole-number durations unless told; shrink to a simple one."""
    return st.builds(
        Case,
        k_tiles=st.integers(1, 8),
        tiles=st.integers(1, 8),
        stages=st.integers(1, 6),
        load_a=durations,
        load_b=durations,
        load_startup=durations,
        load_latency=durations,
        compute=durations,
        epilogue=durations,
        schedule=st.sampled_from(SCHEDULES),
        dma_warps=st.sampled_from([1, 2]),
        mma_in_flight=st.sampled_from([0, 1]),
    )
