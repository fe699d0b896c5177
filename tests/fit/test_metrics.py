"""Metrics against their definitions, spelled out row by row in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsjax.fit.metrics import Metrics, metrics


def spearman(x: list[float], y: list[float]) -> float | None:
    """Pearson's correlation of ranks; rank = how many are smaller, and half of the other equals."""

    def ranks(values):
        return [sum(v < w for v in values) + (values.count(w) - 1) / 2 for w in values]

    a, b = ranks(x), ranks(y)
    p, q = sum(a) / len(a), sum(b) / len(b)
    above = sum((i - p) * (j - q) for i, j in zip(a, b, strict=True))
    below = math.sqrt(sum((i - p) ** 2 for i in a) * sum((j - q) ** 2 for j in b))
    return above / below if below else None


def quantile(values: list[float], share: float) -> float:
    values = sorted(values)
    at = share * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def kernels(rows: list[dict]) -> list[dict]:
    """One row of each kernel, with the mean of its measured times."""
    alike = [
        [r for r in rows if r["kernel"] == code] for code in sorted({r["kernel"] for r in rows})
    ]
    return [some[0] | {"measured": mean([r["measured"] for r in some])} for some in alike]


def brute(rows: list[dict]) -> Metrics:
    errors = [100 * (r["predicted"] - r["measured"]) / r["measured"] for r in rows]
    ape = [abs(e) for e in errors]
    ranks, regrets = [], []
    for problem in sorted({r["problem"] for r in rows}):
        mine = kernels([r for r in rows if r["problem"] == problem])
        picked = min(mine, key=lambda r: r["predicted"])
        regrets.append(picked["measured"] / min(r["measured"] for r in mine))
        rank = spearman([r["predicted"] for r in mine], [r["measured"] for r in mine])
        ranks += [] if rank is None else [rank]
    inside = [r["low"] <= r["measured"] <= r["high"] for r in rows if not math.isnan(r["low"])]
    return Metrics(
        rows=len(rows),
        problems=len(regrets),
        mape_pct=mean(ape),
        median_ape_pct=quantile(ape, 0.5),
        p95_ape_pct=quantile(ape, 0.95),
        max_ape_pct=max(ape),
        bias_pct=mean(errors),
        spearman=mean(ranks),
        regret_mean=mean(regrets),
        regret_p95=quantile(regrets, 0.95),
        regret_max=max(regrets),
        within_2pct=mean([100.0 * (r <= 1.02) for r in regrets]),
        coverage_90_pct=mean([100.0 * i for i in inside]),
        extrapolated_rows=sum(r["extrapolated"] for r in rows),
    )


times = st.integers(1, 40).map(lambda n: n / 4)


@st.composite
def measured_rows(draw) -> dict:
    low = draw(times | st.just(math.nan))
    return {
        "measured": draw(times),
        "predicted": draw(times),
        "low": low,
        "high": math.nan if math.isnan(low) else low + draw(times),
        "extrapolated": draw(st.booleans()),
        "problem": draw(st.integers(0, 5)),
        "kernel": draw(st.integers(0, 9)),
    }


@settings(deadline=None, max_examples=300)
@given(st.lists(measured_rows(), min_size=1, max_size=30))
def test_metrics_are_their_definitions(rows):
    # A kernel has one predicted time.
    known = {(row["problem"], row["kernel"]): row["predicted"] for row in rows}
    for row in rows:
        row["predicted"] = known[row["problem"], row["kernel"]]
    columns = {name: np.asarray([row[name] for row in rows]) for name in rows[0]}
    found, expected = metrics(columns), brute(rows)
    assert found == pytest.approx(expected, nan_ok=True, rel=1e-9, abs=1e-12)


def test_no_rows_have_no_figures():
    none = np.zeros(0)
    columns = dict.fromkeys(("measured", "predicted", "low", "high"), none)
    codes = dict.fromkeys(("problem", "kernel"), none.astype(int))
    found = metrics({**columns, "extrapolated": none.astype(bool), **codes})
    assert (found.rows, found.problems, found.extrapolated_rows) == (0, 0, 0)
    assert set(found.record().values()) == {0, None}
