"""A machine with a learned correction of invented weights, for tests of what uses one."""

from dataclasses import replace

import numpy as np

from wsjax.hardware import Hardware, Network, load_hardware, residual_of

INPUTS = ("m", "waves", "block_n", "stages", "time_us", "full_load_us", "k_tail", "pingpong")
WIDTHS = (5, 3)


def corrected(name: str = "h200", seed: int = 0) -> Hardware:
    """The machine with a network that moves times by some 10 %."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return draw.normal(0, 0.5, shape).astype(np.float32)

    first, second = WIDTHS
    network = Network(
        np.full(len(INPUTS), 4.0, np.float32),
        np.full(len(INPUTS), 0.25, np.float32),
        normal(len(INPUTS), first),
        normal(first),
        normal(first, second),
        normal(second),
        normal(second) * 0.3,
        np.float32(0.02),
    )
    machine = load_hardware(name).physics
    span = machine.span | {"batch": [1, 1], "l2_state": ["cold"], "grid_ctas": [0, 0]}
    return replace(machine, span=span, residual=residual_of(INPUTS, network))
