"""Families of kernels in machines' files."""

import pytest

from wsjax.errors import InputError
from wsjax.hardware import KERNELS, load_hardware, parse_hardware
from wsjax.schema import COLUMNS, Facts, compiled, smem_bytes

FILE = """
sms = 108
smem_bytes_per_sm = 166912
warp_size = 32
"""


def test_a_file_names_the_family_and_gets_its_facts():
    facts = parse_hardware(f'kernels = "triton_async"\n{FILE}').facts
    assert (facts.pipelined, facts.ctas_per_sm_max) == (2, 32)
    assert parse_hardware(f'kernels = "cutlass_sm80"\n{FILE}').facts.pipelined == 1
    assert parse_hardware(FILE).facts.pipelined == 0


def test_what_a_file_says_itself_goes_before_its_family():
    text = f'kernels = "triton_async"\nctas_per_sm_max = 4\n{FILE}'
    assert parse_hardware(text).facts.ctas_per_sm_max == 4


def test_a_warpgroup_reads_operands_from_the_ring_so_no_slot_is_spared():
    machine = load_hardware("h100-triton")
    assert machine.facts.pipelined == 1
    assert load_hardware("h100-sxm").facts.pipelined == 0
    assert machine.parameters == load_hardware("h100-sxm").parameters


def test_the_family_of_a_base_is_replaced():
    machine = parse_hardware('base = "h200"\nkernels = "triton_async"\n')
    assert (machine.facts.cutlass_raster, machine.facts.pipelined) == (0, 1)
    assert machine.residual is None


def test_an_unknown_family_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no family.*did you mean 'triton_async'"):
        parse_hardware(f'kernels = "triton_asinc"\n{FILE}')


def test_families_name_columns_and_facts_that_exist():
    for kernels in KERNELS.values():
        assert set(kernels.facts) <= set(Facts._fields)
        assert all(not COLUMNS[name].complaint(x) for name, x in kernels.columns.items())


def test_a_ring_of_cp_async_has_a_slot_fewer_than_stages():
    facts = load_hardware("a100-sxm").facts

    class C:
        block_m, block_n, block_k = 128, 64, 32
        stages = 1

    needed = []
    for stages in (1, 2, 3, 4):
        C.stages = stages
        needed.append(smem_bytes(C, facts, 2, 2))
    slot = (128 + 64) * 32 * 2 + 16
    assert needed == [slot, slot, 2 * slot, 3 * slot]


def test_programs_of_other_kernels_have_no_terms_of_pipelined_ones():
    assert compiled(load_hardware("h200").facts).pipelined is None
    assert compiled(load_hardware("a100-sxm").facts).pipelined == 2
