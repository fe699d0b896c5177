"""`wsjax hardware`: the machines that wsjax knows, and their files."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wsjax.cli.app import HardwareName, Whole, app
from wsjax.cli.terminal import show_table
from wsjax.errors import InputError

HARDWARE_HELP = """The machines that wsjax knows, and their files.

A machine is a TOML file: facts (`sms`, `smem_bytes_per_sm` and `warp_size` are required) and
continuous parameters, each optional with a neutral default, so that a minimal file is the paper's
machine. Copy one (`wsjax hardware show toy > mine.toml`) and give its path to `--hardware`, or
begin with `wsjax hardware new`: a few facts and a machine that it is like, whose parameters are
scaled. Rates of a data sheet stand in a file as facts, and bound the parameters.

- `h200` is `h200-cutlass`: fitted to measured CUTLASS kernels. `h200-gluon` is the same machine
  with kernels written in Triton's Gluon. Predictions come with a 90 % interval (`time_us_lo`,
  `time_us_hi`), and `extrapolated` is true outside the span of the fitted table.
- `h200-datasheet` is that machine's data sheet and micro-benchmarks, without a fit.
- `h100-sxm`, `h800`, `gh200`, `h20`, `a100-sxm`, `a100-pcie`, `a6000`, `l40`, `l40s`, `rtx-4090`,
  `b200`, `mi300x` are starting points: facts from data sheets, and the parameters of `h200-gluon`
  scaled by them; their predictions are all extrapolated.
- `a6000-paper` is the machine of the paper, `toy` one to work by hand.
"""
hardware = App(name="hardware", help=HARDWARE_HELP)
app.command(hardware)


@hardware.command(name="list")
def list_hardware() -> None:
    """The shipped machines."""
    from wsjax.hardware import hardware_names, load_hardware

    rows = [
        (
            name,
            f"{machine.facts.sms}",
            f"{machine.facts.smem_bytes_per_sm}",
            f"{machine.facts.warp_size}",
            "yes" if machine.calibrated else "no",
        )
        for name in hardware_names()
        for machine in [load_hardware(name)]
    ]
    show_table(("name", "sms", "smem_bytes", "warp", "calibrated"), rows, left=(0, 4))


@hardware.command(name="show")
def show_hardware(name: HardwareName, /) -> None:
    """A machine's file: its facts and parameters, and where they come from."""
    from wsjax.hardware import load_hardware

    print(load_hardware(name).text.rstrip())


@hardware.command(name="new")
def new_hardware(
    name: str,
    /,
    *,
    like: HardwareName = "h200",
    out: Annotated[Path | None, Parameter(help="default: NAME.toml")] = None,
    sms: Annotated[Whole, Parameter(help="multiprocessors")] = None,
    dram_gbs: Annotated[float | None, Parameter(help="DRAM rate, GB/s")] = None,
    l2_gbs: Annotated[float | None, Parameter(help="L2 rate of all slices, GB/s")] = None,
    l2_mib: Annotated[float | None, Parameter(help="L2 size, MiB")] = None,
    bf16_tflops: Annotated[float | None, Parameter(help="dense peak rate, TFLOP/s")] = None,
    clock_mhz: Annotated[float | None, Parameter(help="clock of the peak rate")] = None,
    clock_max_mhz: Annotated[float | None, Parameter(help="highest clock that is seen")] = None,
) -> None:
    """Write the file of a machine that is not known: facts, and a machine that it is like.

    wsjax hardware new h20 --like h200 --sms 78 --dram-gbs 4000 --l2-mib 60 --bf16-tflops 148
    """
    from wsjax.hardware import NewFacts, new_machine

    facts = NewFacts(sms, dram_gbs, l2_gbs, l2_mib, bf16_tflops, clock_mhz, clock_max_mhz)
    text = new_machine(name, like, facts)
    path = out or Path(f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path}: exists already; give another --out") from None
    print(f"wrote {path}; wsjax hardware parameters {path} shows what follows from it")


@hardware.command(name="parameters")
def show_parameters(name: HardwareName = "h200", /) -> None:
    """A machine's parameters: value, share of the fact that bounds it, prior of a fit, meaning."""
    from wsjax import fit
    from wsjax.hardware import load_hardware

    cells = fit.prior_cells(load_hardware(name))
    show_table(fit.PRIOR_HEADINGS, cells, left=(0, 4, 5), spare=(2,))
