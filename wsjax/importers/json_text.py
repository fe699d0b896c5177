"""JSON, read whole; of a text that ends early, the items that are there."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from wsjax.errors import InputError
from wsjax.importers.source import Source

CUT = "the file ends early (an interrupted run?): read up to there"
_DECODER = json.JSONDecoder()
_MARK = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.S)
_FRAGMENT = re.compile(r"[^,:{}\[\]\"\n]{0,40}\s*")

Part = tuple[str, Any, Any]


def parts(source: Source, many: Collection[str] = ()) -> Iterator[Part]:
    """(name, key, value) of a JSON text's parts, in order.

    A member of the outermost object is one (name, None, value); one that `many` names comes item
    by item, (name, key or position, value), and so does an outermost list, whose name is "".
    Where the text ends early so do the parts, and a note says it; InputError with file:line for a
    text that is wrong before its end.
    """
    value = _load(source)
    for name, member in value.items() if isinstance(value, dict) else [("", value)]:
        if isinstance(member, list) and (name in many or not name):
            yield from ((name, key, item) for key, item in enumerate(member))
        elif isinstance(member, dict) and name in many:
            yield from ((name, key, item) for key, item in member.items())
        else:
            yield name, None, member


def _load(source: Source) -> Any:
    text = source.text()
    start = len(text) - len(text.lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not _is_cut(text, error):
            raise _broken(source, text, error.pos, error.msg) from None
        source.notes.append(CUT)
        return json.loads(_closed(text[start:]))
    except RecursionError:
        raise _broken(source, text, start, "nested too deeply") from None
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        source.notes.append(f"text behind the end of the JSON, line {line}, is not read")
    return value


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether nothing but a piece of a value follows the place of an error."""
    unterminated = error.msg.startswith("Unterminated string")
    return unterminated or bool(_FRAGMENT.fullmatch(text, error.pos))


def _closed(text: str) -> str:
    """The text up to its last whole item, with the brackets closed that are open there.

    Items are those of the outermost list, or of the lists and objects in the outermost object.
    """
    closing, end, open_there = "", 0, ""
    depth = 1 if text.startswith("[") else 2
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "{[":
            closing = ("}" if mark == "{" else "]") + closing
            whole = match.end() if len(closing) <= depth else 0
        elif mark in "}]":
            closing = closing[1:]
            whole = match.end() if len(closing) <= depth else 0
        else:
            whole = match.start() if mark == "," and len(closing) <= depth else 0
        if whole:
            end, open_there = whole, closing
    return text[:end] + open_there


def _broken(source: Source, text: str, at: int, what: str) -> InputError:
    line = text.count("\n", 0, at) + 1
    near = text[at : at + 30].splitlines()
    return InputError(
        f"{source.path}:{line}: is broken JSON: {what} at '{near[0] if near else ''}'; "
        "mend it there, or write the file again"
    )
