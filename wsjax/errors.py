"""What wsjax says when it cannot go on: what, where, the nearest valid value, how to mend it."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any


class WsjaxError(Exception):
    """Base of every error that wsjax raises on purpose; `exit_code` is the command line's."""

    exit_code = 1


class InputError(WsjaxError):
    """The user's input is wrong. `problems` holds every mistake found, one message each."""

    exit_code = 2

    def __init__(self, problems: str | Iterable[str]):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class InfeasibleError(WsjaxError):
    """Nothing meets all constraints. `conflict`: a smallest set of them that nothing meets."""

    exit_code = 3

    def __init__(self, message: str, conflict: Iterable[str]):
        self.conflict = tuple(conflict)
        super().__init__("\n".join([message, *(f"  {text}" for text in self.conflict)]))


class UnfinishedError(WsjaxError):
    """The time was over before anything was found, or, as an exit code, proved."""

    exit_code = 4


def gather(*steps: Callable[[], Any]) -> list[Any]:
    """What each step returns; InputError with the mistakes of all those that fail."""
    results, problems = [], []
    for step in steps:
        try:
            results.append(step())
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return results


def nearest(word: object, choices: Iterable[str]) -> str:
    """A hint to append to a message: the choice most like `word`, or all of them if none is."""
    choices = list(choices)
    close = get_close_matches(str(word), choices, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; valid: {', '.join(choices)}"
