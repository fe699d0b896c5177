"""Learn a machine's correction from measured rows: `wsjax.model.residual`, fitted.

**Loss.** With y = log(measured / physics) of a row and o the network's correction,

    mean 2 (sqrt(1 + u^2) - 1), u = (o - y) / SCALE,   plus REGRET_WEIGHT times the expected regret

of choosing a kernel of a problem by exp(-time' / TEMPERATURE): errors that all kernels of a problem
share cost less than those that change their order.

**Ensemble.** Several wide networks from other starts, which see all `intermediates`, are fitted;
their mean errs less than each. One network that sees only the `features` is then fitted to what
that mean says of the rows and of as many again `INVENTED` times, measured kernels on problems whose
sizes are those of several measured ones: so that it costs a row little and errs hardly more.

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
from wsjax.model import CLIP, intermediates, learned_log
from wsjax.schema import Configuration

FEWEST_ROWS, FEWEST_PROBLEMS = 1_000, 50
"""Fewer rows or problems tell no more than the physics."""
TEACHER, STUDENT = (128, 64), (96, 32)
"""The widths of their hidden layers."""
BATCH_PROBLEMS = 16
ROWS_MOST = 64
"""Rows of a problem that are compared with each other; of more, several groups are made."""
SCALE = 0.04
REGRET_WEIGHT, TEMPERATURE = 0.3, 0.03
REGRET_MOST, REGRET_SCALE = 0.5, 0.02
RATE, WARM_UP = 4e-3, 100.0
DECAY = 0.1
"""Of a teacher's weights, in a step at the rate 1."""
STUDENT_ROWS, STUDENT_SCALE = 1024, 0.02
INVENTED = 8
CHUNK = 8_192
LEAST_DEVIATION = 1e-3


class Effort(NamedTuple):
    """How many networks are fitted, for how many passes over the rows, and how many steps the one
    that is kept takes to their mean."""

    teachers: int = 8
    epochs: int = 120
    steps: int = 40_000


USUAL = Effort()


class Examples(NamedTuple):
    """Measured rows as the network learns from them, float32."""

    z: Any
    """Standardised intermediates, (rows, inputs)."""
    wanted: Any
    """log(measured / physics)."""
    log_us: Any
    """log of the physics' time."""
    behind: Any
    """log of the measured time over its problem's least."""


def learn(rows: Measured, machine: Hardware, seed: int = 0, effort: Effort = USUAL) -> Hardware:
    """`machine` with a correction of its own times, fitted to all of `rows` within its span."""
    machine = machine.physics
    raw, names, times_us = _intermediates(rows.configurations, machine)
    known = np.ptp(raw, axis=0) > 0
    mean = raw.mean(axis=0)
    scale = 1.0 / (raw.std(axis=0) + LEAST_DEVIATION)

    def standardised(raw: np.ndarray) -> np.ndarray:
        return np.clip((raw - mean) * scale, -CLIP, CLIP).astype(np.float32)[:, known]

    least = np.full(rows.problem.max() + 1, np.inf)
    np.minimum.at(least, rows.problem, rows.time_us)
    told = (rows.time_us / times_us, times_us, rows.time_us / least[rows.problem])
    examples = Examples(standardised(raw), *(np.log(x).astype(np.float32) for x in told))
    more, *_ = _intermediates(_invented(rows, seed), machine)
    seen = np.concatenate([examples.z, standardised(more[np.isfinite(more).all(axis=1)])])
    kept = [at for at, name in enumerate(names[known]) if name in FEATURES]
    start = partial(_start, mean[known].astype(np.float32), scale[known].astype(np.float32))
    with jax.enable_x64(False):
        teachers = [
            _taught(start(TEACHER, at), examples, rows.problem, effort.epochs, at)
            for at in range(seed, seed + effort.teachers)
        ]
        wanted = np.concatenate([_told(teachers, z) for z in np.array_split(seen, _parts(seen))])
        first = start(STUDENT, seed + effort.teachers, kept)
        network = _distilled(first, seen[:, kept], wanted, effort.steps, seed)
    inputs = tuple(names[known][kept].tolist())
    return replace(machine, residual=residual_of(inputs, jax.tree.map(np.asarray, network)))


def _invented(rows: Measured, seed: int) -> Configuration:
    """Measured kernels on problems that none was measured on: m, n and k each a row's own or
    another's, and all of them together no more work than the largest."""
    draw = np.random.default_rng(seed)
    c, count = rows.configurations, INVENTED * len(rows)
    own, *others = draw.integers(0, len(rows), (4, count))
    sizes = {
        name: getattr(c, name)[np.where(draw.random(count) < 0.5, own, other)]
        for name, other in zip("mnk", others, strict=True)
    }
    mixed = Configuration(*(x[own] for x in c))._replace(**sizes)
    kept = _work(mixed) <= _work(c).max()
    return Configuration(*(x[kept] for x in mixed))


def _work(c: Configuration) -> np.ndarray:
    return 1.0 * c.m * c.n * c.k * c.batch


@jax.jit
def _seen(inputs: Any, times_us: Any) -> dict[str, Any]:
    def one(i: engine.Inputs, time_us: Any) -> dict[str, Any]:
        numbers = engine.floats(i.configuration), i.machine, time_us
        return intermediates(*engine.in_single(numbers))

    return jax.vmap(one)(inputs, times_us)


def _intermediates(
    c: Configuration, machine: Hardware
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The intermediates of configurations, (rows, inputs); their names; and what the recurrences
    take, in µs."""
    inputs, count = engine.columns(c, machine)
    predicted = engine.evaluate(c, machine, legal_override=np.ones(count, bool))
    chunks: list[np.ndarray] = []
    names: list[str] = []
    with jax.enable_x64(True):
        for start in range(0, count, CHUNK):
            at = np.minimum(np.arange(start, start + CHUNK), count - 1)
            named = _seen(inputs.spread(at), predicted.time_us[at])
            names = list(named)
            chunks.append(np.stack([np.asarray(x, np.float32) for x in named.values()], axis=1))
    return np.concatenate(chunks)[:count], np.asarray(names), predicted.time_us


def _start(
    mean: np.ndarray, scale: np.ndarray, widths: tuple[int, int], seed: int, inputs: Any = np.s_[:]
) -> Network:
    """A network of some inputs before it has learned anything."""
    mean, scale = mean[inputs], scale[inputs]
    first, second = widths
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
    return _descend(network, np.concatenate(batches), _row_loss, examples, DECAY)


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


def _parts(rows: np.ndarray) -> int:
    return -(-len(rows) // CHUNK)


@jax.jit
def _told(teachers: Sequence[Network], z: Any) -> Any:
    """What teachers say of rows, on average."""
    return sum(learned_log(teacher, z) for teacher in teachers) / len(teachers)


def _distilled(network: Network, z: Any, wanted: Any, steps: int, seed: int) -> Network:
    """A network fitted to what it is to say of rows."""
    keys = jax.random.split(jax.random.key(seed), steps)
    return _descend(network, keys, _student_loss, (z, wanted), 0.0)


def _student_loss(network: Network, key: Any, known: tuple[Any, Any]) -> Any:
    z, wanted = known
    rows = jax.random.randint(key, (STUDENT_ROWS,), 0, len(z))
    return jnp.mean(_rounded((learned_log(network, z[rows]) - wanted[rows]) / STUDENT_SCALE))


def _rounded(u: Any) -> Any:
    """A square near 0, a distance far from it."""
    return 2.0 * jnp.sqrt(1.0 + u * u) - 2.0


@partial(jax.jit, static_argnames="loss")
def _descend(network: Network, batches: Any, loss: Any, known: Any, decay: float) -> Network:
    """Adam, one step a batch; the rate rises over `WARM_UP` steps and falls to 0 as a cosine."""
    steps = len(batches)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        network, mean, square, taken = state
        gradient = jax.grad(loss)(network, batch, known)
        taken += 1.0
        rate = (
            RATE * jnp.minimum(taken / WARM_UP, 1.0) * (0.5 + 0.5 * jnp.cos(jnp.pi * taken / steps))
        )
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        # The inputs' own mean and scale are data, not weights.
        network = jax.tree.map(
            lambda w, m, s: (
                w
                - rate * m / (1.0 - 0.9**taken) / (jnp.sqrt(s / (1.0 - 0.99**taken)) + 1e-6)
                - rate * decay * w
            ),
            network,
            mean,
            square,
        )._replace(mean=network.mean, scale=network.scale)
        return (network, mean, square, taken), None

    none = jax.tree.map(jnp.zeros_like, network)
    return jax.lax.scan(step, (network, none, none, 0.0), batches)[0][0]
