"""What a machine can do at most, by its data sheet or a micro-benchmark: facts that bound it.

Facts stand at the top of a machine's file, peak rates by dtype in [peak_flop_per_us]. A parameter
that a fact bounds may be at most that (`ceilings`): a fit varies its share of the fact, which is
below 1, and a file that gives the fact alone gets `TYPICAL_SHARE` of it. A file that says
`like = "NAME"` takes all parameters that it does not give from that machine, each times the ratio
of the facts on which it depends (`scaled`).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from wsjax.hardware.parameters import INF, PARAMETERS, Parameters
from wsjax.schema import Facts

SMEM_BYTES_PER_CLOCK = 128.0
"""32 banks of 4 bytes an SM (CUDA programming guide); an AMD compute unit's LDS has as many."""
TYPICAL_SHARE = 0.9
ROUNDING = 1e-6


class Peaks(NamedTuple):
    """Facts that bound parameters; infinite where they are not known.

    dram_bytes_per_us, l2_bytes_per_us: rates of all channels, of all slices. l2_bytes: the size of
    the last cache before DRAM. clock_mhz: the clock to which the peak rates refer.
    clock_max_mhz: the highest that is seen, in short kernels.
    """

    dram_bytes_per_us: float = INF
    l2_bytes_per_us: float = INF
    l2_bytes: float = INF
    clock_mhz: float = INF
    clock_max_mhz: float = INF


class DataSheet(NamedTuple):
    """All facts of a machine on which its parameters depend."""

    facts: Facts
    peaks: Peaks
    peak_flop_per_us: Mapping[str, float]
    compute_ratio: Mapping[str, float]

    @property
    def flop_per_us(self) -> float:
        """The peak rate of all SMs for a dtype of ratio 1."""
        rates = (x / self.compute_ratio.get(k, INF) for k, x in self.peak_flop_per_us.items())
        return max((x for x in rates if x > 0), default=INF)


def ratios(peak_flop_per_us: Mapping[str, float]) -> dict[str, float]:
    """Each dtype's rate relative to that of bf16, or of the first one."""
    unit = peak_flop_per_us.get("bf16") or next(iter(peak_flop_per_us.values()))
    return {name: float(f"{rate / unit:.6g}") for name, rate in peak_flop_per_us.items()}


def ceilings(sheet: DataSheet) -> dict[str, float]:
    """The most that parameters can be, for those that a known fact bounds, and for shares."""
    peaks = sheet.peaks
    most = {
        "dram_throughput_bytes_per_us": peaks.dram_bytes_per_us,
        "l2_throughput_bytes_per_us": peaks.l2_bytes_per_us,
        "l2_capacity_bytes": peaks.l2_bytes,
        "compute_throughput_flop_per_us": sheet.flop_per_us / sheet.facts.sms,
        "smem_throughput_bytes_per_us": SMEM_BYTES_PER_CLOCK * peaks.clock_max_mhz,
    }
    shares = {name: 1.0 for name, known in PARAMETERS.items() if known.share}
    return shares | {name: value for name, value in most.items() if math.isfinite(value)}


def beyond(values: Mapping[str, float], sheet: DataSheet) -> list[str]:
    """What is wrong with parameters above their ceilings."""
    return [
        f"{name}: {values[name]:.7g} is above {_with_unit(name, most)}, the most that "
        "the machine's facts allow; lower it, or correct the fact"
        for name, most in ceilings(sheet).items()
        if name in values and most * (1 + ROUNDING) < values[name] < INF
    ]


def _with_unit(name: str, value: float) -> str:
    unit = PARAMETERS[name].unit
    return f"{value:.7g}" + ("" if unit == "1" else f" {unit}")


def filled(values: Mapping[str, float], sheet: DataSheet) -> dict[str, float]:
    """The values, and of rates that are left out the typical share of the fact that bounds them."""
    typical = {
        name: TYPICAL_SHARE * most
        for name, most in ceilings(sheet).items()
        if PARAMETERS[name].is_rate
    }
    return typical | dict(values)


def scaled(theirs: Parameters, sheet: DataSheet, own: DataSheet) -> dict[str, float]:
    """Another machine's parameters, each as its facts and this machine's say: `Parameter.scale`."""
    per_fact = fact_ratios(sheet, own)
    values = {
        name: value * per_fact[PARAMETERS[name].scale] for name, value in theirs._asdict().items()
    }
    if math.isfinite(own.peaks.clock_mhz) and math.isfinite(own.peaks.clock_max_mhz):
        values["clock_rise"] = max(own.peaks.clock_max_mhz / own.peaks.clock_mhz - 1.0, 0.0)
    most = ceilings(own)
    return {name: min(value, most.get(name, INF)) for name, value in values.items()}


def fact_ratios(sheet: DataSheet, own: DataSheet) -> dict[str, float]:
    """By what the quantities behind parameters (`Parameter.scale`) differ between two machines."""

    def ratio(theirs: float, mine: float) -> float:
        return mine / theirs if math.isfinite(mine) and math.isfinite(theirs) else math.nan

    def known(*choices: float) -> float:
        return next((x for x in choices if not math.isnan(x)), 1.0)

    sms = own.facts.sms / sheet.facts.sms
    clock = known(
        ratio(sheet.peaks.clock_max_mhz, own.peaks.clock_max_mhz),
        ratio(sheet.peaks.clock_mhz, own.peaks.clock_mhz),
    )
    dram = known(ratio(sheet.peaks.dram_bytes_per_us, own.peaks.dram_bytes_per_us))
    return {
        "": 1.0,
        "clock": clock,
        "dram": dram,
        "l2": known(ratio(sheet.peaks.l2_bytes_per_us, own.peaks.l2_bytes_per_us), sms * clock),
        "l2_bytes": known(ratio(sheet.peaks.l2_bytes, own.peaks.l2_bytes)),
        "flop": known(ratio(sheet.flop_per_us / sheet.facts.sms, own.flop_per_us / own.facts.sms)),
    }
