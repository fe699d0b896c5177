"""The search for few kernels, against trying all sets."""

import itertools
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsjax.deadlines import Deadline
from wsjax.portfolio import set_search
from wsjax.portfolio.set_search import Multipliers, Table, greedy, lower_bound
from wsjax.portfolio.sets import (
    Demand,
    choose_sets,
    conflict,
    not_found,
    undominated,
    whole_numbers,
)

NONE = Deadline()


@st.composite
def demands(draw):
    """Small demands of whole numbers, whose sums are exact; every problem has a kernel."""
    problems, kernels = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    cells = st.one_of(st.integers(1, 9), st.just(np.inf))
    row = st.lists(cells, min_size=kernels, max_size=kernels).filter(lambda r: min(r) < np.inf)
    times = np.asarray(draw(st.lists(row, min_size=problems, max_size=problems)), dtype=float)
    weights = draw(st.lists(st.integers(0, 4), min_size=problems, max_size=problems))
    numbers = draw(st.permutations(range(kernels)))
    required = tuple(sorted(numbers[: draw(st.integers(0, min(2, kernels)))]))
    excluded = tuple(sorted(numbers[len(numbers) - draw(st.integers(0, 2)) :]))
    excluded = tuple(kernel for kernel in excluded if kernel not in required)
    builds = draw(st.lists(st.integers(0, 5), min_size=kernels, max_size=kernels))
    scale = draw(st.sampled_from([1.0, 0.1, 1e8]))
    demand = Demand(
        times,
        np.asarray(weights, dtype=float),
        required,
        excluded,
        draw(st.none() | st.sampled_from([0.0, 0.5, 2.0])),
        np.asarray(builds) * scale,
        draw(st.none() | st.integers(0, 12).map(lambda budget: budget * scale)),
    )
    return demand if np.isfinite(demand.best_us).all() else replace(demand, excluded=())


def meets(demand, kernels):
    """Whether a set meets a demand, by the words of its docstring."""
    if not set(demand.required) <= set(kernels) or set(demand.excluded) & set(kernels):
        return False
    if demand.budget is not None:
        cost = sum(round(demand.builds[kernel] * 10**6) for kernel in kernels)
        if cost > round(demand.budget * 10**6):
            return False
    available = [j for j in range(demand.times_us.shape[1]) if j not in demand.excluded]
    for row in demand.times_us:
        time = min((row[kernel] for kernel in kernels), default=np.inf)
        if time == np.inf:
            return False
        if demand.within is not None and time > min(row[available]) * (1 + demand.within):
            return False
    return True


def brute(demand, k):
    """The least time of at most k kernels that meet the demand; None if there are none."""
    count = demand.times_us.shape[1]
    sets = (s for size in range(1, k + 1) for s in itertools.combinations(range(count), size))
    return min((demand.total_us(s) for s in sets if meets(demand, s)), default=None)


@pytest.mark.parametrize("steps", [1, 3, 1_500])
def test_all_sets_tried(steps):
    """With bounds bad and good."""

    @settings(deadline=None, max_examples=120)
    @given(demands(), st.integers(1, 4))
    def check(demand, k):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(set_search, "ROOT_STEPS", steps)
            found = choose_sets(demand, k)
        best = {size: brute(demand, size) for size in range(1, k + 1)}
        if best[k] is None:
            assert found is None
            return
        assert found is not None
        assert [one.k for one in found.sets] == [s for s in best if best[s] is not None]
        for one in found.sets:
            assert one.proved
            assert len(one.kernels) <= one.k
            assert meets(demand, one.kernels)
            assert one.time_us == one.bound_us == best[one.k]

    check()


@settings(deadline=None, max_examples=100)
@given(demands(), st.integers(1, 3))
def test_conflicts_are_smallest(demand, k):
    """The conditions named can't all be met, and without any one of them the others can."""
    if brute(demand, k) is not None:
        return
    names = [f"kernel{number}" for number in range(demand.times_us.shape[1])]
    relax = {
        "without": {"excluded": ()},
        "with": {"required": ()},
        "build": {"budget": None},
        "every": {"within": None},
    }
    texts = conflict(demand, k, names).conflict
    named = [text.split()[0] for text in texts]
    rest, many = demand, demand.times_us.shape[1]
    for word, change in relax.items():
        if word not in named:
            rest = replace(rest, **change)
    limit = k if "at" in named else many
    assert brute(rest, limit) is None
    for word in named:
        if word == "at":
            assert brute(rest, many) is not None
        else:
            assert brute(replace(rest, **relax[word]), limit) is not None


def test_conflict_names_the_nearest_that_can_be_met():
    times = np.array([[1.0, 9.0, 1.5], [9.0, 1.0, 1.5], [1.0, 1.25, 1.0]])
    demand = Demand(times, np.ones(3), within=0.1)
    (within, count) = conflict(demand, 1, "abc").conflict
    assert within.endswith("10 % slower than its best (the others can be met with 50 %)")
    assert count == "at most 1 kernel (the others can be met with 2)"
    assert "in 3 s" in str(not_found(demand, 1, "abc", 3.0))


def structured(problems, kernels, seed=3):
    """Times that depend on how alike problems and kernels are, as real ones do."""
    rng = np.random.default_rng(seed)
    base = rng.lognormal(4, 1.5, problems)
    apart = rng.random((problems, 1, 6)) - rng.random((1, kernels, 6))
    return base[:, None] * (1 + np.linalg.norm(apart, axis=2))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_large_instances_are_solved_and_never_worse_than_greedy(noise):
    """200 problems on 500 kernels, k = 8: proved, or a gap below 1 %."""
    rng = np.random.default_rng(1)
    times = structured(200, 500) * np.exp(noise * rng.standard_normal((200, 500)))
    demand = Demand(times, rng.lognormal(0, 1, 200))
    found = choose_sets(demand, 8, timeout_s=4.0)
    assert found is not None
    chosen, best = [], np.full(200, np.inf)
    for one in found.sets:
        totals = demand.weights @ np.minimum(best[:, None], times)
        chosen.append(int(totals.argmin()))
        best = np.minimum(best, times[:, chosen[-1]])
        assert one.time_us <= totals.min() * (1 + 1e-12)
    answer = found.sets[-1]
    assert answer.bound_us > 0.99 * answer.time_us
    if not noise:
        assert answer.proved


@settings(deadline=None, max_examples=150)
@given(demands(), st.integers(1, 4), st.integers(0, 2**32), st.integers(0, 30))
def test_bounds_hold_for_any_multipliers(demand, k, seed, steps):
    table, _, _ = replace(demand, required=(), within=None).table()
    shape = table.excess.shape
    rng = np.random.default_rng(seed)
    most = 2 * table.useless
    start = Multipliers(rng.integers(-most, most, shape[0]), int(rng.integers(0, most)))
    served = rng.integers(0, table.useless, shape[0])
    affordable = table.builds <= table.budget
    costs, builds = table.excess[:, affordable], table.builds[affordable]
    if not affordable.any():
        return
    question = Table(costs, table.useless, (), builds, table.budget)
    found = lower_bound(question, served, k, start, steps + 1, 1.0, NONE)
    without, with_it = found.rests(k)
    for size in range(k + 1):
        for chosen in itertools.combinations(range(costs.shape[1]), size):
            if builds[list(chosen)].sum() > table.budget:
                continue
            total = np.minimum(served, costs[:, chosen].min(axis=1, initial=table.useless)).sum()
            assert found.value <= total
            for kernel in range(costs.shape[1]):
                assert (with_it if kernel in chosen else without)[kernel] <= total


@settings(deadline=None, max_examples=150)
@given(demands())
def test_dropped_columns_have_a_stand_in(demand):
    excess, useless, _ = whole_numbers(demand.times_us * 1.0)
    builds = demand.builds.astype(np.int64)
    table = Table(excess, useless, demand.required, builds, int(builds.sum()))
    kept = undominated(table)

    def stands_in(i, j):
        free = i in demand.required or builds[i] <= builds[j]
        return i != j and free and (excess[:, i] <= excess[:, j]).all()

    assert set(demand.required) <= set(kept)
    for j in range(excess.shape[1]):
        others = [i for i in kept if stands_in(i, j)]
        if j not in kept:
            assert others
        elif j not in demand.required:
            assert not others


def test_whole_numbers_are_close_and_sums_fit():
    rng = np.random.default_rng(0)
    times = rng.lognormal(0, 8, (300, 40))
    times[rng.random(times.shape) < 0.2] = np.inf
    times[:, 0] = 1.0
    excess, useless, unit = whole_numbers(times)
    runs = np.isfinite(times)
    exact = times - times.min(axis=1, keepdims=True)
    assert np.abs(excess[runs] * unit - exact[runs]).max() <= 1.5 * unit
    assert (excess[~runs] == useless).all()
    assert useless > excess[runs].max()
    assert int(useless) * len(times) < 2**63
    assert whole_numbers(np.zeros((2, 2)))[2] == 1.0


def test_a_passed_deadline_gives_bounds_that_hold():
    demand = Demand(structured(100, 200), np.ones(100))
    exact = choose_sets(demand, 4)
    early = choose_sets(demand, 4, timeout_s=1e-9)
    assert exact is not None
    assert early is not None
    assert [one.k for one in early.sets] == [1, 2, 3, 4]
    assert not early.sets[-1].proved
    for one, best in zip(early.sets, exact.sets, strict=True):
        assert one.bound_us <= best.time_us <= one.time_us
        assert early.all_us <= one.bound_us


def test_ctrl_c_gives_the_best_so_far(monkeypatch):
    original = set_search.lower_bound

    def interrupted(*arguments):
        monkeypatch.setattr(set_search, "lower_bound", original)
        signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(set_search, "lower_bound", interrupted)
    before = signal.getsignal(signal.SIGINT)
    demand = Demand(structured(60, 40), np.ones(60))
    found = choose_sets(demand, 4)
    assert found is not None
    assert found.interrupted
    assert len(found.sets) == 4
    assert signal.getsignal(signal.SIGINT) is before


def test_greedy_takes_the_required_and_what_fits():
    excess = np.array([[0, 5, 9], [9, 5, 0]])
    table = Table(excess, 99, (1,), np.array([3, 3, 4]), 6)
    assert greedy(table, 2) == (0, 1)
    assert greedy(table, 1) == (1,)
