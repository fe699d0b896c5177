"""What is tried on each problem, laid out once, against every row worked out for itself."""

import numpy as np
import pytest

from wsjax import tables
from wsjax.hardware import intervals
from wsjax.schema.columns import COLUMNS
from wsjax.schema.limits import Facts, resolve
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps.layout import layout
from wsjax.sweeps.rows import _verdicts, columns_of, kernels_of, legal_rows

TEXT = """
hardware = "h200"
[hardware_parameters]
{machine}
[problems]
rows = [{{ name = "a", n = 512, k = 4096 }}, {{ name = "b", n = 70000, k = 64 }}]
[columns]
m = {{ from = 64, to = 448, step = 64 }}
dtype_in = {dtypes}
block_m = [64, 128, 256]
block_n = [64, 256]
block_k = [32, 64]
schedule = ["serial", "pingpong", "cooperative"]
[filter]
where = "{where}"
"""
SMS, DEPENDS = "sms = [66, 132]", "smem_bytes_per_sm = [65536, 232448]"


@pytest.mark.parametrize(
    ("machine", "dtypes", "where", "laid", "judged"),
    [
        ("", '"bf16"', "math_warps == 4 or stages > 3", True, True),
        (SMS, '"bf16"', "block_m != 64 and schedule != 'serial'", True, True),
        (SMS, '"fp16"', "m != 128 and block_m <= m", True, False),
        ("", '["bf16", "fp16"]', "stages > 3", False, False),
        (DEPENDS, '"bf16"', "block_m > 0", False, False),
    ],
)
def test_rows_are_those_that_are_worked_out_one_by_one(machine, dtypes, where, laid, judged):
    run = parse_spec(TEXT.format(machine=machine, dtypes=dtypes, where=where), "trials.toml")
    (shard,) = layout(run)
    candidates, product, predicate = shard.candidates, shard.product, run.predicate()
    assert (kernels_of(candidates) is not None) is laid
    assert (_verdicts(candidates, predicate) is not None) is judged

    numbers = np.arange(len(product))
    rows = product.take(numbers)
    own = candidates.hardware.facts._asdict() | candidates.hardware.parameters._asdict()
    facts = {name: rows[name] for name in shard.swept if name in Facts._fields}
    known = {name: rows[name] for name in product.names if name in COLUMNS}
    resolved = resolve(known, candidates.hardware.facts._replace(**facts))
    outside = intervals.outside(candidates.hardware, resolved, len(numbers))
    for name in shard.swept:
        outside |= rows[name] != own[name]

    assert predicate is not None
    wanted = rows | resolved._asdict()
    reasons = candidates._reasons(numbers)
    passes = predicate.mask(wanted, len(numbers))
    start, stop = 5, len(numbers) - 7
    kept = legal_rows(shard, predicate, start, stop)
    here = slice(start, stop)
    legal = start + np.flatnonzero((passes & (reasons == 0))[here])
    np.testing.assert_array_equal(kept.numbers, legal)
    assert kept.filtered == np.sum(~passes[here])
    np.testing.assert_array_equal(
        kept.illegal, np.bincount(reasons[here][passes[here]], None, 20)[: len(kept.illegal)]
    )

    for chosen in (legal, legal[::-1], legal[3:4], numbers):
        columns, unbacked = columns_of(candidates, chosen)
        np.testing.assert_array_equal(unbacked, outside[chosen])
        assert {*columns} == {*wanted}
        for name, values in columns.items():
            values = np.broadcast_to(values, len(chosen))
            np.testing.assert_array_equal(
                values, np.broadcast_to(wanted[name], len(numbers))[chosen]
            )
            if laid and name in COLUMNS:
                assert values.dtype == tables.kind_of(name)
