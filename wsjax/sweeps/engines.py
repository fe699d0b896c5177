"""Who makes a sweep's files: this process, several at a time, or a Ray cluster.

On a cluster each file is a task, which any machine may do. A file is a function of its metadata's
texts and of which rows it stands for, so that a task that is done twice, or on another machine,
leaves the same bytes; whoever shares the directory can go on.
"""

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from socket import create_connection, gethostname
from threading import Event
from typing import Any, NamedTuple

from wsjax import __version__, tables
from wsjax.errors import InputError, WsjaxError, nearest
from wsjax.spec import Spec
from wsjax.sweeps import shards
from wsjax.sweeps.layout import run_of, shard_of
from wsjax.sweeps.rows import Shard
from wsjax.sweeps.shards import Sizes, Written, ahead
from wsjax.tables import Store, store

ENGINES = ("local", "ray")
RETRIES = 3
"""How often a task is given to another worker, after one has died with it."""
AHEAD = 4
"""Tasks for each device that are given out before the first of them is waited for."""
SECONDS = 10
"""How long a cluster has to answer."""


class Work(NamedTuple):
    """What a sweep has yet to do.

    place: where its files go. texts: their metadata. run: the sweep. todo: the files to make, in
    order. sizes: how much is done at once. advance(n): to call when n more candidates are done.
    """

    place: Store
    texts: Mapping[str, str]
    run: Spec
    todo: Sequence[Shard]
    sizes: Sizes
    advance: shards.Advance


def check_engine(engine: str, address: str | None) -> None:
    """Raise InputError for an engine that is none or not installed, or an address that none
    needs."""
    if engine not in ENGINES:
        raise InputError(f"--engine: unknown word '{engine}'{nearest(engine, ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError("--address: only with --engine ray; leave one out or add the other")
    if engine == "ray" and find_spec("ray") is None:
        raise InputError("--engine ray: ray is not installed; pip install 'wsjax[ray]'")


def make(engine: str, address: str | None, work: Work) -> Generator[tuple[Shard, Written]]:
    """Make the files, in order. To be closed: files that are half made then vanish."""
    return _local(work) if engine == "local" else _on_ray(work, address)


def _local(work: Work) -> Generator[tuple[Shard, Written]]:
    """Files of all rows are made several at a time: one thread can't write as fast as others
    predict."""
    output = work.run.output
    files = 1 if output.best is not None or output.quantiles else work.sizes.files
    stopped = Event()

    def advance(rows: int) -> None:
        if stopped.is_set():
            raise CancelledError
        work.advance(rows)

    def write(shard: Shard) -> Written:
        file = work.place.replacing(shard.name)
        return shards.write(file, work.texts, shard, work.run, work.sizes, advance)

    with ThreadPoolExecutor(files) as pool:
        try:
            yield from ahead(
                lambda shard: pool.submit(write, shard).result, work.todo, lambda: files
            )
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


class Task(NamedTuple):
    """A file for a worker to make.

    place: the sweep's directory, or its URI. name: the file's. texts: its metadata. machine: the
    name of the machine whose rows `start` to `stop` it stands for. sizes: how much is done at once.
    """

    place: str
    name: str
    texts: Mapping[str, str]
    machine: str
    start: int
    stop: int
    sizes: Sizes


def make_task(task: Task) -> Written:
    """Write a task's file."""
    wanted = task.texts["wsjax.version"]
    if wanted != __version__:
        raise WsjaxError(
            f"{gethostname()}: has wsjax {__version__}, the driver {wanted}; install one everywhere"
        )
    run = _run(tuple(task.texts.items()))
    machine = next(machine for machine in run.hardware if machine.name == task.machine)
    shard = shard_of(run, machine, task.start, task.stop)
    file = store(task.place).replacing(task.name)
    return shards.write(file, task.texts, shard, run, task.sizes, lambda rows: None)


@lru_cache(1)
def _run(texts: tuple[tuple[str, str], ...]) -> Spec:
    return run_of(dict(texts), "the task")


def _on_ray(work: Work, address: str | None) -> Generator[tuple[Shard, Written]]:
    """Make the files on a cluster.

    address: the cluster's; by default RAY_ADDRESS, else one is started on this machine.
    InputError if no cluster answers.
    """
    place = work.place
    given: dict[str, Any] = {}
    with _connected(address) as ray:
        remote = ray.remote(make_task)

        def devices() -> tuple[str, int]:
            there = ray.cluster_resources()
            gpus = int(there.get("GPU", 0))
            return ("num_gpus", gpus) if gpus else ("num_cpus", int(there.get("CPU", 0)))

        def start(shard: Shard) -> Callable[[], Written]:
            directory = str(place.local.absolute()) if place.local else place.uri
            machine = shard.machine.name
            task = Task(
                *(directory, shard.name, work.texts, machine, shard.start, shard.stop, work.sizes)
            )
            options = remote.options(max_retries=RETRIES, **{devices()[0]: 1})
            given[shard.name] = options.remote(task)
            return lambda: wait(shard)

        def wait(shard: Shard) -> Written:
            try:
                return ray.get(given.pop(shard.name))
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, WsjaxError | OSError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayError as error:
                reason = str(error).splitlines()[0]
                raise WsjaxError(
                    f"{place.shown(shard.name)}: {1 + RETRIES} workers died with it, or the "
                    f"cluster did: {reason}; finished files stay: repeat the command to go on"
                ) from None

        try:
            for shard, written in ahead(start, work.todo, lambda: AHEAD * max(1, devices()[1])):
                if tables.read_footer(place.source(shard.name)) is None:
                    raise InputError(
                        f"{place.shown(shard.name)}: a worker wrote it, but it is not here; give "
                        "--out a directory that all machines share, or a URI such as "
                        "s3://bucket/path"
                    )
                work.advance(shard.stop - shard.start)
                yield shard, written
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
