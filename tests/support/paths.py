"""Where the repository, its sweep files and the tests' data lie."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SWEEPS = ROOT / "sweeps"
