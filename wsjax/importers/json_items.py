"""JSON read item by item: large files cost little memory, and cut ones give what is there."""

import json
import re
from collections.abc import Collection, Generator, Iterator
from typing import Any

from wsjax.errors import InputError
from wsjax.importers.source import Source

CUT = "the file ends early (an interrupted run?): read up to there"
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_FRAGMENT = re.compile(r"[^,:{}\[\]\"\n]{0,40}\s*")

Part = tuple[str, Any, Any]


class _CutError(Exception):
    """The text ends inside a value."""


def parts(source: Source, many: Collection[str] = ()) -> Iterator[Part]:
    """(name, key, value) of a JSON text's parts, in order.

    A member of the outermost object is one (name, None, value); one that `many` names comes item
    by item, (name, key or position, value), and so does an outermost list, whose name is "".
    Where the text ends early so do the parts, and a note says it; InputError with file:line for a
    text that is wrong before its end.
    """
    text = source.text()
    at = _skip(text, 0)
    try:
        if text.startswith("[", at):
            at = yield from _items(source, text, at, "")
        else:
            at = yield from _members(source, text, at, many)
    except _CutError:
        source.notes.append(CUT)
        return
    if text[_skip(text, at) :]:
        line = text.count("\n", 0, at) + 1
        source.notes.append(f"text behind the end of the JSON, line {line}, is not read")


def _members(
    source: Source, text: str, at: int, many: Collection[str]
) -> Generator[Part, None, int]:
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        name, at = _key(source, text, at)
        if name in many and text.startswith(("{", "["), at):
            at = yield from _items(source, text, at, name)
        else:
            value, at = _value(source, text, at)
            yield name, None, value
        at = _separator(source, text, at, "}")
    return at + 1


def _items(source: Source, text: str, at: int, name: str) -> Generator[Part, None, int]:
    closing = "}" if text.startswith("{", at) else "]"
    at = _skip(text, at + 1)
    position = 0
    while not text.startswith(closing, at):
        key: Any = position
        if closing == "}":
            key, at = _key(source, text, at)
        value, at = _value(source, text, at)
        yield name, key, value
        at = _separator(source, text, at, closing)
        position += 1
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _key(source: Source, text: str, at: int) -> tuple[str, int]:
    key, at = _value(source, text, at)
    at = _skip(text, at)
    if not text.startswith(":", at):
        raise _broken(source, text, at, "expected ':'")
    return key, _skip(text, at + 1)


def _separator(source: Source, text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1)
    if not text.startswith(closing, at):
        raise _broken(source, text, at, f"expected ',' or '{closing}'")
    return at


def _value(source: Source, text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _broken(source, text, error.pos, error.msg) from None


def _broken(source: Source, text: str, at: int, what: str) -> Exception:
    """A cut where nothing but a piece of a value follows, else a mistake of the file."""
    if what.startswith("Unterminated string") or _FRAGMENT.fullmatch(text, at):
        return _CutError()
    line = text.count("\n", 0, at) + 1
    near = text[at : at + 30].splitlines()
    return InputError(
        f"{source.path}:{line}: is broken JSON: {what} at '{near[0] if near else ''}'; "
        "mend it there, or write the file again"
    )
