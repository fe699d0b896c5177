"""Files that tools leave beside the one with the times: what they are, and which to import."""

import re

from wsjax.importers.formats import cutlass, plain
from wsjax.importers.source import Source

_WINNERS = re.compile(r"best config selected:", re.I)
JSON = "Kernel Tuner's cache or T4, Triton's autotune.json, TorchInductor's log"


def complaint(source: Source) -> str:
    """What is wrong with a file that no reader can take measurements from, "" if nothing is."""
    if source.is_json:
        return f"is JSON of no known format; known: {JSON}"
    if cutlass.is_text(source):
        return (
            "is the text that cutlass_profiler prints, without its CSV; run it with --output=FILE, "
            "and import the FILE.gemm.csv that it writes"
        )
    if _WINNERS.search(source.head) and not {"m", "n", "k"} <= set(plain.columns(source)):
        return (
            "holds the winners only of Triton's autotuning, without times; import the "
            "<kernel>.autotune.json that Triton writes with TRITON_CACHE_AUTOTUNING=1"
        )
    return ""
