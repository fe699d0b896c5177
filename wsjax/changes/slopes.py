"""Slopes of kernels' times: d log time / d log of a machine's number.

They are the closed form's gradient; where that is not proved, the formula's all the same.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine
from wsjax.engine import Inputs, predict_row
from wsjax.hardware import PARAMETERS, Hardware, Parameters
from wsjax.schema import Configuration

ROWS = 64
"""Rows that a program takes at once."""
NAMES = (*PARAMETERS, "sms")
"""What the slopes are for; of SMs but their number in shares, not in whole waves."""


@jax.jit
def _slopes(inputs: Inputs) -> jax.Array:
    """(rows, `NAMES`)."""

    def log_time(z: jax.Array, row: Inputs) -> jax.Array:
        def moved(value: jax.Array, by: jax.Array) -> jax.Array:
            felt = jnp.isfinite(value) & (value != 0)
            return jnp.where(felt, jnp.where(felt, value, 1.0) * jnp.exp(by), value)

        parameters = Parameters(*map(moved, row.machine.parameters, z))
        facts = row.machine.facts._replace(sms=row.machine.facts.sms * jnp.exp(z[-1]))
        machine = row.machine._replace(parameters=parameters, facts=facts)
        return jnp.log(predict_row(row.configuration, machine, True).prediction.time_us)

    def of_row(row: Inputs) -> jax.Array:
        at = jnp.zeros(len(NAMES))
        return jax.vmap(lambda to: jax.jvp(lambda z: log_time(z, row), (at,), (to,))[1])(
            jnp.eye(len(NAMES))
        )

    return jax.vmap(of_row)(inputs)


def slopes(c: Configuration, machine: Hardware) -> np.ndarray:
    """(rows, `NAMES`) of configurations, arrays (rows,), on a machine."""
    inputs, rows = engine.columns(c, machine)
    parts = []
    with jax.enable_x64(True):
        for start in range(0, rows, ROWS):
            some = inputs.spread(np.minimum(np.arange(start, start + ROWS), rows - 1))
            parts.append(np.asarray(_slopes(some)))
    return np.concatenate(parts)[:rows]


def logarithms(machines: Sequence[Hardware], base: Hardware) -> np.ndarray:
    """(machines, `NAMES`) log of each machine's number over the base's; NaN where only one of them
    has the term."""

    def numbers(machine: Hardware) -> np.ndarray:
        return np.array([*machine.parameters, machine.facts.sms], float)

    own = np.stack([numbers(machine) for machine in machines])
    same = own == numbers(base)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(own / numbers(base))
    return np.where(same, 0.0, np.where(np.isfinite(logs), logs, np.nan))
