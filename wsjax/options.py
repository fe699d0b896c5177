"""The command line's application, and the kinds of options that its verbs share."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, Token

from wsjax import __version__

app = App(
    name="wsjax",
    help="Predict how long warp-specialised GEMM kernels take.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
hardware = App(name="hardware", help="The machines that wsjax knows.")
app.command(hardware)


def whole(_: object, tokens: Sequence[Token]) -> int:
    """A whole number as it is written: 3.5 is none."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        raise ValueError(f"'{text}' is not a whole number")
    return int(text)


Whole = Annotated[int | None, Parameter(converter=whole)]
HardwareName = Annotated[str, Parameter(help="a shipped machine's name or a TOML file")]


def names(_: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, in one or several options."""
    words = (word.strip() for token in tokens for word in token.value.split(","))
    return tuple(word for word in words if word)


Names = Annotated[tuple[str, ...], Parameter(converter=names, negative="", n_tokens=1)]
ReportDirectory = Annotated[Path | None, Parameter(help="a directory for tables as files")]
