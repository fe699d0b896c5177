"""The file of a machine that is not known, from the nearest one that is and a few facts."""

from collections.abc import Mapping
from dataclasses import dataclass

from wsjax.errors import InputError
from wsjax.hardware.machine import Hardware, load_hardware


@dataclass(frozen=True)
class NewFacts:
    """What is known of a new machine; None: as the machine that it is like."""

    sms: int | None = None
    dram_gbs: float | None = None
    l2_gbs: float | None = None
    l2_mib: float | None = None
    bf16_tflops: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None


def new_machine(name: str, like: str, new: NewFacts) -> str:
    """The text of a file: the facts of `like` but for those given, and `like` itself, from whose
    parameters this machine's follow. A peak rate that is not given grows with SMs and clock.

    Raises InputError for facts that are not above 0, or a machine that has none.
    """
    other = load_hardware(like)
    if not other.peak_flop_per_us:
        raise InputError(
            f"--like {like}: its file has no [peak_flop_per_us] to scale by; take a machine with "
            "facts, such as h200"
        )
    problems = [
        f"--{option.replace('_', '-')} {value}: give a number above 0"
        for option, value in vars(new).items()
        if value is not None and not 0 < value < float("inf")
    ]
    if problems:
        raise InputError(problems)
    return "\n".join(_lines(name, like, other, new)) + "\n"


def _lines(name: str, like: str, other: Hardware, new: NewFacts) -> list[str]:
    facts = other.facts._replace(**({"sms": new.sms} if new.sms else {}))
    defaults = facts._field_defaults
    told: Mapping[str, float | None] = {
        "dram_bytes_per_us": new.dram_gbs and new.dram_gbs * 1e3,
        "l2_bytes_per_us": new.l2_gbs and new.l2_gbs * 1e3,
        "l2_bytes": new.l2_mib and new.l2_mib * 2**20,
        "clock_mhz": new.clock_mhz,
        "clock_max_mhz": new.clock_max_mhz or new.clock_mhz,
    }
    peaks = other.peaks._asdict() | {key: float(value) for key, value in told.items() if value}
    grown = facts.sms / other.facts.sms
    if new.clock_mhz:
        grown *= new.clock_mhz / other.peaks.clock_mhz
    if new.bf16_tflops:
        grown = new.bf16_tflops * 1e6 / other.peak_flop_per_us["bf16"]
    given = {*(key for key, value in told.items() if value), *(["sms"] if new.sms else [])}

    def line(key: str, value: float) -> str:
        source = "given" if key in given else f"as {like}"
        return f"{key} = {value!r}  # {source}"

    return [
        f'name = "{name}"',
        f'like = "{like}"  # its parameters, scaled by the facts below',
        "calibrated = false",
        *(line(key, x) for key, x in facts._asdict().items() if x != defaults.get(key)),
        *(line(key, x) for key, x in peaks.items() if x != float("inf")),
        "",
        "[peak_flop_per_us]  # " + ("of the rate given" if new.bf16_tflops else "by SMs and clock"),
        *(f"{key} = {x * grown!r}" for key, x in other.peak_flop_per_us.items()),
    ]
