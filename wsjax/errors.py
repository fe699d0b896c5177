"""What wsjax says when it cannot go on: what, where, the nearest valid value, how to mend it."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

_KEYS_BEFORE = re.compile(r"([A-Za-z][\w+.-]*:/{1,2})(?:[^/\s?@:]*:[^\s?]*|[^/\s?@:]+)@")
_KEYS_BEHIND = re.compile(
    r"([?&][\w-]*(?:key|secret|token|password|credential|sig|sas)[\w-]*=)[^&\s]*", re.IGNORECASE
)


def public(text: object) -> str:
    """Text for messages, its URIs without keys: neither before the bucket nor in the options."""
    bare = _KEYS_BEFORE.sub(r"\1", str(text))
    return _KEYS_BEHIND.sub(lambda m: f"{m[1]}***{':' if m[0].endswith(':') else ''}", bare)


class WsjaxError(Exception):
    """Base of every error that wsjax raises on purpose; `exit_code` is the command line's. Its
    message shows no keys of a URI."""

    exit_code = 1

    def __init__(self, message: str):
        super().__init__(public(message))


class InputError(WsjaxError):
    """The user's input is wrong. `problems` holds every mistake found, one message each."""

    exit_code = 2

    def __init__(self, problems: str | Iterable[str]):
        given = (problems,) if isinstance(problems, str) else problems
        self.problems = tuple(map(public, given))
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
