"""Learn a machine's correction from measured rows: `wsjax.model.residual`, fitted.

**Loss.** With y = log(measured / physics) of a row and o the network's correction,

    mean 2 (sqrt(1 + u^2) - 1), u = (o - y) / SCALE,   plus REGRET_WEIGHT times the expected regret

of choosing a kernel of a problem by exp(-time' / TEMPERATURE): errors that all kernels of a problem
share cost less than those that change their order.

**Ensemble.** Several networks from other starts are fitted; their mean errs less than each. One
network is then fitted to that mean, on the rows and on mixtures of them, so that it costs a row one
network and errs hardly more.

Sizes and weights were chosen on training problems of the H200 tables, with a third of them left
out. Seeds are fixed: the same rows give the same numbers on the same processor.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine
from wsjax.fit.measured import Measured
from wsjax.hardware import FEATURES, Hardware, Network, residual_of
from wsjax.model import CLIP, features, learned_log

FEWEST_ROWS, FEWEST_PROBLEMS = 1_000, 50
"""Fewer rows or problems tell no more than the physics."""
WIDTHS = (64, 32)
BATCH_PROBLEMS = 16
ROWS_MOST = 64
"""Rows of a problem that are compared with each other; of more, several groups are made."""
SCALE = 0.04
REGRET_WEIGHT, TEMPERATURE = 0.3, 0.03
REGRET_MOST, REGRET_SCALE = 0.5, 0.02
RATE, WARM_UP = 4e-3, 100.0
STUDENT_ROWS, STUDENT_SCALE = 1024, 0.02
MIXED, NOISE = 0.5, 0.05
"""A student's rows lie up to halfway between two rows, and are blurred."""
CHUNK = 8_192
LEAST_DEVIATION = 1e-3


class Effort(NamedTuple):
    """How many networks are fitted, for how many passes over the rows, and how many steps the one
    that is kept takes to their mean."""

    teachers: int = 8
    epochs: int = 60
    steps: int = 20_000


USUAL = Effort()


class Examples(NamedTuple):
    """Measured rows as the network learns from them, float32."""

    z: Any
    """Standardised features, (rows, inputs)."""
    wanted: Any
    """log(measured / physics)."""
    log_us: Any
    """log of the physics' time."""
    behind: Any
    """log of the measured time over its problem's least."""


def learn(rows: Measured, machine: Hardware, seed: int = 0, effort: Effort = USUAL) -> Hardware:
    """`machine` with a correction of its own times, fitted to all of `rows` within its span."""
    machine = machine.physics
    predicted = engine.evaluate(
        rows.configurations, machine, legal_override=np.ones(len(rows), dtype=bool)
    )
    raw, names = _features(rows, machine, predicted.time_us)
    mean = raw.mean(axis=0)
    scale = 1.0 / (raw.std(axis=0) + LEAST_DEVIATION)
    least = np.full(rows.problem.max() + 1, np.inf)
    np.minimum.at(least, rows.problem, rows.time_us)
    examples = Examples(
        np.clip((raw - mean) * scale, -CLIP, CLIP).astype(np.float32),
        *(
            x.astype(np.float32)
            for x in (
                np.log(rows.time_us / predicted.time_us),
                np.log(predicted.time_us),
                np.log(rows.time_us / least[rows.problem]),
            )
        ),
    )
    start = partial(_start, mean.astype(np.float32), scale.astype(np.float32))
    with jax.enable_x64(False), jax.default_matmul_precision("float32"):
        teachers = [
            _taught(start(at), examples, rows.problem, effort.epochs, at)
            for at in range(seed, seed + effort.teachers)
        ]
        first = start(seed + effort.teachers)
        network = _distilled(first, teachers, examples.z, effort.steps, seed)
    return replace(machine, residual=residual_of(names, jax.tree.map(np.asarray, network)))


@jax.jit
def _features_of(inputs: Any, times_us: Any) -> dict[str, Any]:
    def one(i: engine.Inputs, time_us: Any) -> dict[str, Any]:
        return features(engine.floats(i.configuration), i.machine, time_us)

    return jax.vmap(one)(inputs, times_us)


def _features(
    rows: Measured, machine: Hardware, times_us: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features of rows, (rows, inputs), and their names; those that never vary are left out."""
    inputs, count = engine.columns(rows.configurations, machine)
    chunks = []
    with jax.enable_x64(True):
        for start in range(0, count, CHUNK):
            at = np.minimum(np.arange(start, start + CHUNK), count - 1)
            named = _features_of(inputs.spread(at), times_us[at])
            chunks.append(np.stack([np.asarray(named[x], np.float32) for x in FEATURES], axis=1))
    table = np.concatenate(chunks)[:count]
    varies = np.ptp(table, axis=0) > 0
    return table[:, varies], tuple(np.asarray(FEATURES)[varies].tolist())


def _start(mean: np.ndarray, scale: np.ndarray, seed: int) -> Network:
    """A network before it has learned anything."""
    first, second = WIDTHS
    keys = jax.random.split(jax.random.key(seed), 3)

    def normal(key: Any, rows: int, *columns: int) -> Any:
        return jax.random.normal(key, (rows, *columns)) * np.float32((2.0 / rows) ** 0.5)

    return Network(
        mean,
        scale,
        normal(keys[0], len(mean), first),
        jnp.zeros(first),
        normal(keys[1], first, second),
        jnp.zeros(second),
        normal(keys[2], second) * np.float32(0.1),
        jnp.zeros(()),
    )


def _taught(
    network: Network, examples: Examples, problem: np.ndarray, epochs: int, seed: int
) -> Network:
    """A network fitted to measured rows."""
    draw = np.random.default_rng(seed)
    batches = []
    for _ in range(epochs):
        groups = _groups(problem, draw)
        whole = len(groups) // BATCH_PROBLEMS * BATCH_PROBLEMS
        chosen = np.resize(draw.permutation(len(groups)), max(whole, BATCH_PROBLEMS))
        batches.append(groups[chosen].reshape(-1, BATCH_PROBLEMS, groups.shape[1]))
    return _descend(network, np.concatenate(batches), _row_loss, examples)


def _groups(problem: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Rows of one problem each, at most `ROWS_MOST`, in random order; -1 where there are fewer."""
    order = draw.permutation(len(problem))
    order = order[np.argsort(problem[order], kind="stable")]
    counts = np.bincount(problem)
    widest = min(int(counts.max()), ROWS_MOST)
    found = []
    for rows in np.split(order, np.cumsum(counts[counts > 0])[:-1]):
        for part in np.array_split(rows, -(-len(rows) // widest)):
            found.append(np.append(part, np.full(widest - len(part), -1)))
    return np.stack(found).astype(np.int32)


def _row_loss(network: Network, batch: Any, examples: Examples) -> Any:
    """Of groups of rows (groups, rows), as the module's docstring says."""
    counts = batch >= 0
    z, wanted, log_us, behind = (x[jnp.maximum(batch, 0)] for x in examples)
    found = learned_log(network, z)
    error = jnp.sum(jnp.where(counts, _rounded((found - wanted) / SCALE), 0.0)) / jnp.sum(counts)
    chosen = jax.nn.softmax(jnp.where(counts, -(log_us + found) / TEMPERATURE, -1e9), axis=1)
    regret = jnp.where(counts, jnp.minimum(jnp.expm1(behind), REGRET_MOST), 0.0)
    return error + REGRET_WEIGHT / REGRET_SCALE * jnp.mean(jnp.sum(chosen * regret, axis=1))


def _distilled(
    network: Network, teachers: Sequence[Network], z: np.ndarray, steps: int, seed: int
) -> Network:
    """A network fitted to the mean of others."""
    keys = jax.random.split(jax.random.key(seed), steps)
    return _descend(network, keys, _student_loss, (tuple(teachers), z))


def _student_loss(network: Network, key: Any, known: tuple[Sequence[Network], Any]) -> Any:
    teachers, z = known
    keys = jax.random.split(key, 4)
    one, other = (
        z[jax.random.randint(key, (STUDENT_ROWS,), 0, len(z))] for key in (keys[0], keys[1])
    )
    mixed = one + jax.random.uniform(keys[2], (STUDENT_ROWS, 1)) * MIXED * (other - one)
    mixed += NOISE * jax.random.normal(keys[3], mixed.shape)
    wanted = sum(learned_log(teacher, mixed) for teacher in teachers) / len(teachers)
    return jnp.mean(_rounded((learned_log(network, mixed) - wanted) / STUDENT_SCALE))


def _rounded(u: Any) -> Any:
    """A square near 0, a distance far from it."""
    return 2.0 * jnp.sqrt(1.0 + u * u) - 2.0


@partial(jax.jit, static_argnames="loss")
def _descend(network: Network, batches: Any, loss: Any, known: Any) -> Network:
    """Adam, one step a batch; the rate rises over `WARM_UP` steps and falls to 0 as a cosine."""
    steps = len(batches)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        network, mean, square, taken = state
        gradient = jax.grad(loss)(network, batch, known)
        # The features' own mean and scale are data, not weights.
        gradient = gradient._replace(mean=0.0 * network.mean, scale=0.0 * network.scale)
        taken += 1.0
        rate = (
            RATE * jnp.minimum(taken / WARM_UP, 1.0) * (0.5 + 0.5 * jnp.cos(jnp.pi * taken / steps))
        )
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        network = jax.tree.map(
            lambda w, m, s: (
                w - rate * m / (1.0 - 0.9**taken) / (jnp.sqrt(s / (1.0 - 0.99**taken)) + 1e-6)
            ),
            network,
            mean,
            square,
        )
        return (network, mean, square, taken), None

    none = jax.tree.map(jnp.zeros_like, network)
    return jax.lax.scan(step, (network, none, none, 0.0), batches)[0][0]
