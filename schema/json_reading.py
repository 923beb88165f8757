"""JSON text to plain trees, with what documents in YAML are refused for, and the line of every value.

JSON is read several times as fast as YAML, of any layout. Whatever is no JSON is left to the caller, who may find YAML
in it: a mapping in braces is either.
"""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn

from vani.errors import DocumentError

__all__ = ["NotJSONError", "begins_as_json", "is_long_json", "line_in_json", "parse_json"]

MAX_KEYS: Final = 100_000
"""Of one mapping: each that its schema does not know becomes an error of a kilobyte."""
MAX_DEPTH: Final = 100
MAX_ENTRIES: Final = 12_000_000
"""Commas and brackets; each takes at most 250 bytes. A profile of 60 MB has 4e6."""

_BEGIN: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*["}]')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TEXTS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_WORD: Final = re.compile(r"-?Infinity|NaN")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSONError(DocumentError):
    """The text is not JSON."""


class _RefusedError(Exception):
    """The text is JSON that is refused; holds why, and what to do."""


def begins_as_json(text: str) -> bool:
    """Whether a text begins with a brace and a quoted key, as every document in JSON does."""
    return _BEGIN.match(text) is not None


def parse_json(text: str, where: str) -> Any:
    """Read JSON; `where` stands in front of every error.

    Raises
    ------
    NotJSONError
        It is none; the message begins with `where:line:column`.
    DocumentError
        A key that is there twice, a number that is none or has thousands of digits, halves of characters, too many keys
        in one mapping, too many values, or too many levels.
    """
    if text.count(",") + text.count("{") + text.count("[") > MAX_ENTRIES:
        what = f"has more than {MAX_ENTRIES:,} commas and brackets"
        raise DocumentError(what, where=where, todo="write fewer files (`--files N`)")
    try:
        tree = json.loads(text, object_pairs_hook=_mapping, parse_constant=_no_number)
    except JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise NotJSONError(f"not JSON: {_lowered(error.msg)}", where=place, todo="write it anew") from None
    except _RefusedError as refused:
        what, todo, place = _explained(text, where, *refused.args)
        raise DocumentError(what, where=place, todo=todo) from None
    except RecursionError:
        raise DocumentError("is nested too deeply", where=where, todo="flatten it") from None
    except ValueError:
        # Python converts no integer of more than 4,300 digits.
        raise DocumentError("a number has thousands of digits", where=where, todo="write fewer") from None
    _check_depth(tree, where)
    if _HALF.search(text) is not None:
        _check_characters(tree, text, where)
    return tree


def line_in_json(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path`, or of the last part of `path` that exists.

    Raises
    ------
    ValueError
        The text is not JSON.
    """
    decode = JSONDecoder().raw_decode
    at, line_at = _behind_space(text, 0), 0
    for part in path:
        found = _below(text, at, part, decode)
        # A part that does not exist is the label of a union.
        if found is not None:
            line_at, at = found
    return text.count("\n", 0, line_at) + 1


def is_long_json(content: bytes) -> bool:
    """Whether bytes begin as Vani writes a profile in JSON."""
    return content.startswith((b'{"schema":', b'{\n  "schema":'))


def _below(text: str, at: int, part: int | str, decode: Any) -> tuple[int, int] | None:
    """Where the key (or entry) `part` of the collection at `at` stands, and where its value does."""
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return None
    at, index = _behind_space(text, at + 1), 0
    while text[at : at + 1] not in ("}", "]", ""):
        key: int | str = index
        place = at
        if opening == "{":
            key, at = decode(text, at)
            at = _behind_space(text, _behind_space(text, at) + 1)
        if key == part:
            return place, at
        _, at = decode(text, at)
        at = _behind_space(text, at)
        if text[at : at + 1] == ",":
            at = _behind_space(text, at + 1)
        index += 1
    return None


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RefusedError("twice", next(key for i, key in enumerate(keys) if key in keys[:i]))
    if len(found) > MAX_KEYS:
        raise _RefusedError("keys", "")
    return found


def _no_number(word: str) -> NoReturn:
    raise _RefusedError("number", word)


def _explained(text: str, where: str, kind: str, word: str) -> tuple[str, str, str]:
    """What is wrong, what to do, and where: found again in the text, which only a refused one has to pay for."""
    if kind == "keys":
        return f"a mapping has more than {MAX_KEYS:,} keys", "write fewer", where
    if kind == "number":
        # Strings are blanked, so that no word in them is taken for a number.
        found = _WORD.search(_TEXTS.sub(lambda string: " " * len(string[0]), text))
        return f"{word} is not a number of JSON", "write null", _place(text, where, found)
    shown = word if len(word) <= 40 else f"{word[:30]}...{word[-7:]}"
    return f"key {shown!r} is there twice", "keep one of them", _place(text, where, _repeated(text, word))


def _repeated(text: str, key: str) -> re.Match[str] | None:
    """The key where it stands for the second time in one mapping; None where escapes hide it."""
    depths: list[bool] = []
    for found in re.finditer(r'"(?:[^"\\]|\\.)*+"(?P<colon>[ \t\r\n]*:)?|[{}]', text, re.DOTALL):
        token = found[0]
        if token == "{":
            depths.append(False)
        elif token == "}":
            depths.pop()
        elif found["colon"] is not None and json.loads(token[: -len(found["colon"])]) == key:
            if depths[-1]:
                return found
            depths[-1] = True
    return None


def _place(text: str, where: str, found: re.Match[str] | None) -> str:
    if found is None:
        return where
    line = text.count("\n", 0, found.start()) + 1
    return f"{where}:{line}:{found.start() - text.rfind(chr(10), 0, found.start())}"


def _check_depth(tree: object, where: str) -> None:
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)  # type: ignore[attr-defined]
            if type(value) is dict or type(value) is list
        ]
        if not level:
            return
    raise DocumentError("is nested too deeply", where=where, todo="flatten it")


def _check_characters(tree: object, text: str, where: str) -> None:
    """Two escapes may stand for one character; a half alone is none, and no document can hold it."""
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        place = _place(text, where, _HALF.search(text))
        raise DocumentError("holds half of a character", where=place, todo="write it without") from None


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
