"""One module a format: how a file of it is recognised, read a piece at a time, and translated."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from wsjax.importers.formats import (
    aiconfigurator,
    autoheuristic,
    cutlass,
    h200,
    hipblaslt,
    inductor,
    kernel_tuner,
    nsight,
    plain,
    triton,
)
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd


class Format(Protocol):
    """What a module of this package has. NEEDS: columns without which no row can be read."""

    @property
    def NEEDS(self) -> Collection[str]: ...  # noqa: N802

    def recognises(self, source: Source) -> bool:
        """Whether a file is of the format, by its head."""
        ...

    def pieces(self, source: Source) -> Iterator["pd.DataFrame"]:
        """The file's rows with the columns it has, some 100,000 rows at once."""
        ...

    def translate(self, theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
        """The columns of a piece in our words; what it keeps of the others, under their names."""
        ...


FORMATS: dict[str, Format] = {
    "kernel_tuner": kernel_tuner,
    "triton": triton,
    "inductor": inductor,
    "autoheuristic": autoheuristic,
    "cutlass_profiler": cutlass,
    "hipblaslt": hipblaslt,
    "nsight": nsight,
    "aiconfigurator": aiconfigurator,
    "h200": h200,
    "plain": plain,
}
"""By name, in the order in which they are asked: plain takes what no other does."""
