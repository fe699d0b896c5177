"""Axes over the machine: hardware parameters and facts that a sweep replaces or scales."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsjax import hardware as hardware_
from wsjax.hardware import BASIS_KEYS, FACTS, PARAMETERS, Hardware
from wsjax.schema import Axis, shown
from wsjax.spec.axes import Refuse, read_values, refuse_some

FACTOR_MAX = 1e9


@dataclass(frozen=True)
class Override:
    """An axis over one hardware parameter or fact: its values, or factors of the machine's own."""

    name: str
    values: Sequence[float]
    scale: bool

    def axis(self, hardware: Hardware) -> Axis:
        """The axis on `hardware`: a float64 column, int64 for a fact."""
        values = self.applied(hardware)
        return Axis((self.name,), (values if isinstance(values, range) else np.array(values),))

    def applied(self, hardware: Hardware) -> Sequence[float]:
        """The parameter's values on `hardware`; scaled facts are whole where that is exact."""
        if isinstance(self.values, range):
            return self.values
        base = _own(hardware, self.name)
        values = [base * value if self.scale else value for value in self.values]
        if self.name in PARAMETERS:
            return [float(value) for value in values]
        return [int(value) if float(value).is_integer() else value for value in values]


def read_overrides(
    table: Mapping[str, Any], hardware: Sequence[Hardware], refuse: Refuse
) -> tuple[Override, ...]:
    """The axes of [hardware_parameters], in the order of PARAMETERS and FACTS.

    Each key holds values, or `{ scale = values }`: factors of each machine's own value.
    """
    overrides = []
    for name in (*PARAMETERS, *FACTS):
        if name not in table:
            continue
        value, fact = table[name], name in FACTS
        scale = isinstance(value, dict) and "scale" in value
        if scale:
            others = ", ".join(key for key in value if key != "scale")
            if others:
                refuse(name, f"'scale' stands alone; leave out: {others}")
            values = read_values(name, value["scale"], _factor, refuse, whole=False)
        else:
            check = hardware_.fact if fact else hardware_.parameter
            values = read_values(name, value, check, refuse, whole=fact)
        if values is None:
            continue
        override = Override(name, values, scale)
        complaints = [text for machine in hardware for text in _misfits(override, machine)]
        refuse_some(name, complaints, refuse)
        overrides.append(override)
    return tuple(overrides)


def _factor(key: str, value: Any) -> str:
    good = type(value) in (int, float) and 0 < value < FACTOR_MAX
    wanted = f"a factor above 0 and below {FACTOR_MAX:g}"
    return "" if good else f"scale: expected {wanted}, not {shown(value)}"


def _misfits(override: Override, machine: Hardware) -> list[str]:
    """Why an override makes no sense on a machine."""
    name = override.name
    unused = BASIS_KEYS["bytes" if machine.compute_basis == "flops" else "flops"]
    if name == unused:
        used = BASIS_KEYS[machine.compute_basis]
        return [f"{machine.name} does not use it (compute_basis); sweep {used} instead"]
    if not override.scale:
        return []
    own = _own(machine, name)
    if own == 0 or math.isinf(own):
        return [f"{machine.name} has {shown(own)}, which no factor changes; give values instead"]
    check = hardware_.fact if name in FACTS else hardware_.parameter
    return [
        f"{shown(factor)} times {machine.name}'s {shown(own)}: {complaint}"
        for factor, value in zip(override.values, override.applied(machine), strict=True)
        if (complaint := check(name, value))
    ]


def _own(machine: Hardware, name: str) -> float:
    return getattr(machine.facts if name in FACTS else machine.parameters, name)
