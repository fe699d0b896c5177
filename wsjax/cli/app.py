"""The command line's application, and options that verbs share."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, Token

from wsjax import __version__


def version() -> str:
    """The versions of wsjax and jax, and the device that jax computes on."""
    import jax

    try:
        devices = jax.devices()
        where = devices[0].device_kind + (f" x{len(devices)}" if len(devices) > 1 else "")
    except (RuntimeError, AssertionError) as error:
        where = f"no device {error}".splitlines()[0].strip()
    return f"wsjax {__version__}, jax {jax.__version__} on {where}"


HELP = """Predict how long warp-specialised GEMM kernels take.

Exit codes:

- 0: done; of `optimize` and `choose`: proved
- 1: could not go on (a full disk, ...)
- 2: wrong input, or, of `predict`, an illegal configuration; what, where, and how to mend it
- 3: nothing meets all constraints; those that conflict are named
- 4: the time was up before the answer was proved; the best found until then is printed
- 130: Ctrl-C; what was found until then is printed or kept

`python -m pydoc wsjax` introduces the packages.
"""
app = App(
    name="wsjax",
    help=HELP,
    version=version,
    suppress_keyboard_interrupt=False,
)


@app.command(show=False)
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script with which a shell completes verbs and options.

    wsjax completion bash > ~/.local/share/bash-completion/completions/wsjax

    Parameters
    ----------
    shell
        the shell that reads it
    """
    print(app.generate_completion(shell=shell))


def whole(_: object, tokens: Sequence[Token]) -> int:
    """A whole number as it is written: 3.5 is none."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        raise ValueError(f"'{text}' is not a whole number")
    return int(text)


def names(_: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, in one or several options."""
    words = (word.strip() for token in tokens for word in token.value.split(","))
    return tuple(word for word in words if word)


Whole = Annotated[int | None, Parameter(converter=whole)]
Names = Annotated[tuple[str, ...], Parameter(converter=names, negative="", n_tokens=1)]
HardwareName = Annotated[str, Parameter(help="a shipped machine's name or a TOML file")]
ReportDirectory = Annotated[Path | None, Parameter(help="a directory for tables as files")]
AsJson = Annotated[bool, Parameter(negative="", help="print one JSON object")]
SpaceFile = Annotated[
    Path | None, Parameter(help="a space file (.toml): the kernels to choose from")
]
M = Annotated[Whole, Parameter(name="-m", help="rows of A and C")]
N = Annotated[Whole, Parameter(name="-n", help="columns of B and C")]
K = Annotated[Whole, Parameter(name="-k", help="columns of A, rows of B")]
Batch = Annotated[Whole, Parameter(help="GEMMs of one launch; default: 1")]
Dtype = Annotated[str | None, Parameter(help="of A, B and C; default: bf16")]
DtypeOut = Annotated[str | None, Parameter(help="of C, if it is another")]
Layout = Annotated[str | None, Parameter(help="nt (default), nn, tn or tt: how A and B are stored")]


@Parameter(name="*")
@dataclass(frozen=True)
class ConfigurationOptions:
    """What verbs take that look at one configuration."""

    m: M = None
    n: N = None
    k: K = None
    tile: Annotated[
        str | None, Parameter(help="block_m x block_n x block_k, such as 128x128x64")
    ] = None
    stages: Annotated[
        Whole, Parameter(help="slots of the circular buffer; default: all that fit")
    ] = None
    schedule: Annotated[
        str | None,
        Parameter(
            help="serial, persistent, pingpong or cooperative; default: persistent, or the nearest "
            "that the machine was fitted to"
        ),
    ] = None
    dma_warps: Annotated[Whole, Parameter(help="1 (default) or 2")] = None
    math_warps: Annotated[Whole, Parameter(help="default: 4; pingpong and cooperative 8")] = None
    mma_in_flight: Annotated[
        Whole, Parameter(help="0 or 1; default: 0 if the machine was fitted to it")
    ] = None
    accum: Annotated[
        str | None, Parameter(help="f32 (default); fp8's sums: f32_fast or f32_promoted")
    ] = None
    dtype: Dtype = None
    dtype_out: DtypeOut = None
    layout: Layout = None
    batch: Batch = None
    group_m: Annotated[
        Whole, Parameter(help="rows of tiles that the raster order groups; default: 1")
    ] = None

    def given(self) -> dict[str, int | str]:
        """The options that were given, as they are spelled."""
        return {
            f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}": value
            for name, value in asdict(self).items()
            if value is not None
        }


NOTHING_GIVEN = ConfigurationOptions()
