"""Sweeps on a Ray cluster: each file is a task, which any machine of the cluster may do.

A file is a function of its metadata's texts and of which rows it stands for, so that a task that
is done twice, or on another machine, leaves the same bytes; whoever shares the directory can go on.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from socket import create_connection, gethostname
from typing import Any, NamedTuple

from wsjax import __version__
from wsjax.errors import InputError, WsjaxError
from wsjax.spec import Spec
from wsjax.sweeps import shards
from wsjax.sweeps.layout import Piece, part_of, run_of
from wsjax.sweeps.shards import Written
from wsjax.tables import Folder, Store, store

RETRIES = 3
"""How often a task is given to another worker, after one has died with it."""
AHEAD = 4
"""Tasks for each device that are given out before the first of them is waited for."""
SECONDS = 10
"""How long a cluster has to answer."""

Make = Callable[[Piece], Written]


class Task(NamedTuple):
    """A file to make: where, its name, its metadata, and the rows of a machine, by its name."""

    place: str
    name: str
    texts: Mapping[str, str]
    machine: str
    start: int
    stop: int


def make(task: Task) -> Written:
    """Write a task's file."""
    wanted = task.texts["wsjax.version"]
    if wanted != __version__:
        raise WsjaxError(
            f"{gethostname()}: has wsjax {__version__}, the driver {wanted}; install one everywhere"
        )
    run = _run(tuple(task.texts.items()))
    machine = next(machine for machine in run.hardware if machine.name == task.machine)
    part = part_of(run, machine, task.start, task.stop)
    place = store(task.place).replacing(task.name)
    return shards.write(place, task.texts, part, run, lambda rows: None)


@lru_cache(1)
def _run(texts: tuple[tuple[str, str], ...]) -> Spec:
    return run_of(dict(texts), "the task")


@contextmanager
def on_ray(
    place: Store, texts: Mapping[str, str], pieces: Sequence[Piece], address: str | None
) -> Iterator[Make]:
    """A function that waits for a piece's file, the next of `pieces` or any other, while a Ray
    cluster makes those behind it too.

    address: the cluster's; by default RAY_ADDRESS, else one is started on this machine.
    InputError if no cluster answers.
    """
    with _connected(address) as ray:
        remote = ray.remote(make)
        waiting, given = iter(pieces), {}
        directory = str(place.path.absolute()) if isinstance(place, Folder) else place.uri

        def give(piece: Piece) -> Any:
            name, part = piece
            machine = part.machine.name
            task = Task(directory, name, texts, machine, part.start, part.stop)
            kind = "GPU" if ray.cluster_resources().get("GPU", 0) >= 1 else "CPU"
            device = {"num_gpus": 1} if kind == "GPU" else {"num_cpus": 1}
            return remote.options(max_retries=RETRIES, **device).remote(task)

        def wait(piece: Piece) -> Written:
            devices = ray.cluster_resources()
            count = AHEAD * max(1, int(devices.get("GPU", 0) or devices.get("CPU", 0)))
            given.update({x.name: give(x) for x in islice(waiting, max(count - len(given), 0))})
            task = given.pop(piece.name) if piece.name in given else give(piece)
            try:
                return ray.get(task)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, WsjaxError | OSError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayError as error:
                reason = str(error).splitlines()[0]
                raise WsjaxError(
                    f"{place.shown(piece.name)}: {1 + RETRIES} workers died with it, or the "
                    f"cluster did: {reason}; finished files stay: repeat the command to go on"
                ) from None

        try:
            yield wait
        finally:
            for task in given.values():
                ray.cancel(task)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The module ray, with a cluster to work on; one that was connected to already stays so."""
    import ray  # pyright: ignore[reportMissingImports] (an extra)

    if ray.is_initialized():
        yield ray
        return
    import logging

    here = address or os.environ.get("RAY_ADDRESS")
    _check_reachable(here or "")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    dashboard = None if here else False
    try:
        ray.init(
            address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard
        )
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        raise _unreachable(here, str(error).splitlines()[0]) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise InputError if nothing listens at an address; Ray itself takes minutes to say so."""
    match = re.fullmatch(r"(?:ray://)?(.+):(\d{1,5})", address)
    if match is None:
        return
    try:
        create_connection((match[1].strip("[]"), int(match[2])), SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, str(error)) from None


def _unreachable(address: str | None, reason: str) -> InputError:
    return InputError(
        f"--address {address}: no Ray cluster answers there: {reason}; `ray status` on the cluster "
        "tells its address; left out, this machine does the work"
    )
