"""A sweep's directory: Parquet shards and a manifest, valid at every instant.

A shard appears whole, by renaming; the manifest, replaced after each, says which are done and what
the sweep is. Who repeats the command with the same texts goes on with the first shard that is not
done. The manifest's name begins with `_` so that readers of a directory pass it by.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsjax.errors import InputError, WsjaxError
from wsjax.files import replacing

MANIFEST = "_manifest.json"
SHARD = re.compile(r"part-\d{5,}\.parquet")
TEMPORARY = re.compile(r"\..*\.tmp")
WORDS = {
    "wsjax.spec": "the sweep file has changed",
    "wsjax.hardware": "a hardware file has changed",
    "wsjax.version": "another version of wsjax wrote it",
}


@dataclass(frozen=True)
class Dataset:
    """An open directory. `texts`: what every file's metadata says; `shards`: those done, by name,
    each with its candidate rows' range and counts."""

    directory: Path
    texts: Mapping[str, str]
    shards: dict[str, dict[str, Any]]

    def path(self, number: int) -> Path:
        """Where shard `number` is."""
        return self.directory / f"part-{number:05d}.parquet"

    def finished(self, number: int) -> dict[str, Any] | None:
        """What the manifest says of shard `number`, if it is done and its file is there."""
        path = self.path(number)
        return self.shards.get(path.name) if path.is_file() else None

    def record(self, number: int, shard: dict[str, Any]) -> None:
        """Write into the manifest that shard `number` is done."""
        self.shards[self.path(number).name] = shard
        _save(self)


@contextmanager
def open_dataset(directory: Path, texts: Mapping[str, str]) -> Iterator[Dataset]:
    """Make or resume the directory of the sweep that `texts` describe; no one else may meanwhile.

    Raises InputError for a directory of another sweep, or with files that no sweep wrote.
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: is a file; give a directory")
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        dataset = Dataset(directory, texts, _finished(directory, texts))
        _save(dataset)
        yield dataset


def _finished(directory: Path, texts: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The shards that the manifest in `directory` lists; InputError if it is not this sweep's."""
    mend = "choose another --out, or delete it"
    names = sorted(p.name for p in directory.iterdir() if not TEMPORARY.fullmatch(p.name))
    known = [name for name in names if name == MANIFEST or SHARD.fullmatch(name)]
    foreign = [name for name in names if MANIFEST not in names or name not in known]
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InputError(
            f"{directory}: holds files that no sweep wrote: {', '.join(foreign[:3])}{more}; {mend}"
        )
    if not names:
        return {}
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        found, shards = dict(manifest["texts"]), dict(manifest["shards"])
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{directory / MANIFEST}: is no manifest of a sweep; {mend}") from None
    differing = [key for key in {**texts, **found} if found.get(key) != texts.get(key)]
    if differing:
        why = " and ".join(WORDS.get(key, f"{key} differs") for key in differing)
        raise InputError(f"{directory}: holds another sweep ({why}); {mend}")
    return shards


def _save(dataset: Dataset) -> None:
    content = {"texts": dict(dataset.texts), "shards": dict(sorted(dataset.shards.items()))}
    with replacing(dataset.directory / MANIFEST) as file:
        file.write(json.dumps(content, indent=1).encode())


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the directory against other sweeps, where the system has file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    import os

    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise WsjaxError(f"{directory}: another sweep is writing here; wait for it") from None
    except OSError:
        pass
    try:
        yield
    finally:
        os.close(handle)
