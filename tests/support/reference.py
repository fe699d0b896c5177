"""The reference: one CTA played event by event, with a clock, semaphores and processes.

It shares no code and no equation with the package. A process (a DMA warp, a MATH group) is a
generator that yields either a duration, to be busy for so long, or a semaphore, to take one of
its permits, first come, first served. Durations may be ints, floats or Fractions, all in one
unit; with ints and Fractions every result is exact.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from typing import Literal, NamedTuple

Duration = int | float | Fraction
Schedule = Literal["serial", "persistent", "pingpong", "cooperative"]
GROUPS: dict[Schedule, int] = {"serial": 1, "persistent": 1, "pingpong": 2, "cooperative": 1}


@dataclass(frozen=True)
class Case:
    """What one CTA does: `tiles` output tiles of `k_tiles` steps, through a ring of `stages`."""

    k_tiles: int
    tiles: int
    stages: int
    load_a: Duration
    load_b: Duration
    load_startup: Duration
    load_latency: Duration
    compute: Duration
    epilogue: Duration
    schedule: Schedule
    dma_warps: int
    mma_in_flight: int


class Outcome(NamedTuple):
    """Time and waits of the CTA, and when each step's compute starts (serial: of one tile)."""

    time: Duration
    math_wait: Duration
    dma_wait: Duration
    math_starts: list[Duration]


class Clock:
    """Runs processes in order of time; what falls on one instant runs in order of its request."""

    def __init__(self) -> None:
        self.now: Duration = 0
        self.agenda: list[tuple[Duration, int, Process | Semaphore]] = []
        self.runnable: deque[Process] = deque()
        self.requests = 0

    def after(self, delay: Duration, what: "Process | Semaphore") -> None:
        """Resume a process, or post a semaphore, `delay` from now."""
        self.requests += 1
        heappush(self.agenda, (self.now + delay, self.requests, what))

    def run(self) -> None:
        """Run until nothing is left to happen."""
        while self.runnable or self.agenda:
            if self.runnable:
                self.resume(self.runnable.popleft())
                continue
            self.now, _, what = heappop(self.agenda)
            if isinstance(what, Semaphore):
                what.post()
            else:
                self.resume(what)

    def resume(self, process: "Process") -> None:
        """Run one process until it is busy, has to wait, or ends."""
        for demand in process:
            if not isinstance(demand, Semaphore):
                self.after(demand, process)
                return
            if not demand.permits:
                demand.waiting.append(process)
                return
            demand.permits -= 1


class Semaphore:
    """Permits that processes take by yielding the semaphore; a post gives one back."""

    def __init__(self, clock: Clock, permits: int) -> None:
        self.clock = clock
        self.permits = permits
        self.waiting: deque[Process] = deque()

    def post(self) -> None:
        """Hand a permit to the process that has waited longest, or keep it."""
        if self.waiting:
            self.clock.runnable.append(self.waiting.popleft())
        else:
            self.permits += 1


Process = Iterator[Semaphore | Duration]


class Machine:
    """One CTA on one SM: its ring, its transfer server, its DMA warps and its MATH groups."""

    def __init__(self, case: Case, clock: Clock | None = None) -> None:
        self.case = case
        self.clock = clock or Clock()
        self.steps = range(case.k_tiles * case.tiles)
        self.groups = GROUPS[case.schedule]
        # Each DMA warp counts the free slots for itself: a slot's release posts both counts.
        self.free = [Semaphore(self.clock, case.stages) for _ in range(case.dma_warps)]
        self.ready = Semaphore(self.clock, 0)
        self.server_turns = self.turns(case.dma_warps)
        self.mainloop_turns = self.turns(self.groups)
        self.math_wait: Duration = 0
        self.dma_wait: Duration = 0
        self.math_starts: list[Duration] = []

    def turns(self, takers: int) -> list[Semaphore]:
        """One turn that takers pass round, starting with the first of them."""
        return [Semaphore(self.clock, int(taker == 0)) for taker in range(takers)]

    def dma_warp(self, warp: int, startup: Duration, load: Duration) -> Process:
        """One load of every step; after the last warp's, the step's data is on its way."""
        case, clock, free, ready = self.case, self.clock, self.free[warp], self.ready
        own_turn = self.server_turns[warp]
        next_turn = self.server_turns[(warp + 1) % case.dma_warps]
        last_of_step = warp == case.dma_warps - 1
        for _ in self.steps:
            finished = clock.now
            yield free
            self.dma_wait += clock.now - finished
            yield startup
            yield own_turn
            yield load
            next_turn.post()
            if last_of_step:
                clock.after(case.load_latency, ready)

    def math_group(self, group: int) -> Process:
        """Every `groups`-th output tile: its mainloop when it has the turn, then its epilogue."""
        own_turn = self.mainloop_turns[group]
        next_turn = self.mainloop_turns[(group + 1) % self.groups]
        for _ in range(group, self.case.tiles, self.groups):
            yield own_turn
            yield from self.mainloop(self.case.k_tiles)
            next_turn.post()
            yield self.case.epilogue

    def mainloop(self, k_tiles: int) -> Process:
        """The steps of one output tile, or of a share of one."""
        case, clock, ready = self.case, self.clock, self.ready
        in_flight = case.mma_in_flight == 1 and case.stages > 1
        for step in range(k_tiles):
            had_turn = clock.now
            yield ready
            self.math_wait += clock.now - had_turn
            self.math_starts.append(clock.now)
            if in_flight and step > 0:
                self.release_slot()  # of the step before, whose compute has ended
            yield case.compute
            if not in_flight or step == k_tiles - 1:
                self.release_slot()

    def release_slot(self) -> None:
        for free in self.free:
            free.post()

    def begin(self) -> None:
        """Make the processes ready to run."""
        startup, a, b = self.case.load_startup, self.case.load_a, self.case.load_b
        warps = {1: [(2 * startup, a + b)], 2: [(startup, a), (startup, b)]}
        for warp, (busy, load) in enumerate(warps[self.case.dma_warps]):
            self.clock.runnable.append(self.dma_warp(warp, busy, load))
        for group in range(self.groups):
            self.clock.runnable.append(self.math_group(group))

    def run(self) -> Outcome:
        """Play the CTA to its end."""
        self.begin()
        self.clock.run()
        return Outcome(self.clock.now, self.math_wait, self.dma_wait, self.math_starts)


def simulate(case: Case) -> Outcome:
    """Time, waits and compute starts of one CTA, without the launch."""
    if case.schedule != "serial":
        return Machine(case).run()
    time, math_wait, dma_wait, starts = Machine(replace(case, tiles=1)).run()
    return Outcome(case.tiles * time, case.tiles * math_wait, case.tiles * dma_wait, starts)


class Unit(NamedTuple):
    """What a CTA takes at a time: a share of the k-tiles of one output tile."""

    tile: int
    share: int
    shares: int
    k_tiles: int


class Worker(Machine):
    """A CTA that takes units; behind each mainloop, MATH adds its sums to the tile's others."""

    def __init__(self, case: Case, clock: Clock, units: list[Unit], launch: "Launch") -> None:
        super().__init__(case, clock)
        self.units, self.launch = units, launch
        self.steps = range(sum(unit.k_tiles for unit in units))

    def math_group(self, group: int) -> Process:
        """Every unit, its reduction, and of a tile's last share the epilogue."""
        for unit in self.units:
            yield from self.mainloop(unit.k_tiles)
            if unit.shares > 1:
                yield from self.reduce(unit)
            if unit.share == unit.shares - 1:
                yield self.case.epilogue

    def reduce(self, unit: Unit) -> Process:
        """Behind the share before; if the order is free, behind the first, the last behind all."""
        before = range(unit.share)
        if unit.share < unit.shares - 1 and not self.launch.ordered:
            before = before[:1]
        for share in before:
            done = self.launch.done[unit.tile, share]
            yield done
            done.post()
        yield self.launch.reduction
        self.launch.done[unit.tile, unit.share].post()


class Launch:
    """All CTAs of a launch, each with its units in order; `case` has the durations."""

    def __init__(
        self, case: Case, ctas: list[list[Unit]], reduction: Duration, *, ordered: bool
    ) -> None:
        self.clock = Clock()
        self.reduction, self.ordered = reduction, ordered
        units = [unit for cta in ctas for unit in cta]
        self.done = {(unit.tile, unit.share): Semaphore(self.clock, 0) for unit in units}
        for cta in ctas:
            Worker(case, self.clock, cta, self).begin()

    def run(self) -> Duration:
        """When all CTAs are done."""
        self.clock.run()
        return self.clock.now


def split_k(ctas: int, tiles: int, splits: int, k_tiles: int) -> list[list[Unit]]:
    """Each CTA's units: all tiles' first shares, then all second ones, dealt round; the first of
    unequal shares are the longer ones."""
    least, longer = divmod(k_tiles, splits)
    units = [
        Unit(tile, share, splits, least + (share < longer))
        for share in range(splits)
        for tile in range(tiles)
    ]
    return [units[cta::ctas] for cta in range(min(ctas, len(units)))]
