"""`wsjax hardware`: the machines that wsjax knows, and their files."""

from cyclopts import App

from wsjax.cli.app import HardwareName, app
from wsjax.cli.terminal import show_table

HARDWARE_HELP = """The machines that wsjax knows, and their files.

A machine is a TOML file: facts (`sms`, `smem_bytes_per_sm` and `warp_size` are required) and
continuous parameters, each optional with a neutral default, so that a minimal file is the paper's
machine. Copy one (`wsjax hardware show toy > mine.toml`) and give its path to `--hardware`.

- `h200` is `h200-cutlass`: fitted to measured CUTLASS kernels. `h200-gluon` is the same machine
  with kernels written in Triton's Gluon. Predictions come with a 90 % interval (`time_us_lo`,
  `time_us_hi`), and `extrapolated` is true outside the span of the fitted table.
- `h200-datasheet`, `h100-sxm`, `a100-sxm`, `a6000`, `l40s`, `b200`, `mi300x` are starting points
  from data sheets; their predictions are all extrapolated.
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
