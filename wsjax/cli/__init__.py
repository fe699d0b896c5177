"""The command line: one verb, one call, what it prints, and exit codes."""

from wsjax.cli.main import main

__all__ = ["main"]
