"""JSON text to plain trees, refused for the same reasons as YAML, with the line of every value; and trees to JSON.

Long texts are parsed by pydantic's parser, in half the time. It reports less about faults, so Python's own parser has
to find them, and keeps the last of two equal keys, where the other refuses both; a program that writes megabytes writes
no key twice. Nothing in a written text moves a terminal's cursor or changes the direction of letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn

from vani.errors import DocumentError

MAX_KEYS: Final = 100_000
"""Most keys of one mapping: each that its schema does not know becomes an error of a kilobyte."""
MAX_DEPTH: Final = 100
"""Most levels of mappings and lists."""
MAX_ENTRIES: Final = 12_000_000
"""Most values of a document; each takes at most 250 bytes of memory. A profile of 60 MB has 4e6."""

_LONG: Final = 1 << 20
"""Characters; people write shorter texts."""
_BEGIN: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*["}]')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TEXTS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_WORD: Final = re.compile(r"-?Infinity|NaN")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSONError(DocumentError):
    """The text is not JSON."""


class _RefusedError(Exception):
    """The text is JSON, but not accepted; carries the kind of fault and the token concerned."""


def begins_as_json(text: str) -> bool:
    """Whether a text begins with a brace and a quoted key, as every document in JSON does."""
    return _BEGIN.match(text) is not None


def parse_json(text: str, where: str) -> Any:
    """Read JSON; every error begins with `where`.

    Raises
    ------
    NotJSONError
        The text is not JSON; the message begins with `where:line:column`.
    DocumentError
        A key appears twice, a number is not finite or has thousands of digits, a string contains half of a surrogate
        pair, or there are too many keys in one mapping, too many values or too many levels.
    """
    if text.count(",") + text.count("{") + text.count("[") > MAX_ENTRIES:
        what = f"has more than {MAX_ENTRIES:,} commas and brackets"
        raise DocumentError(what, where=where, todo="write fewer files (`--files N`)")
    tree = _parsed_at_once(text) if len(text) > _LONG else None
    if tree is None:
        tree = _parsed(text, where)
        if "\\" in text and _HALF.search(text) is not None:
            _check_characters(tree, text, where)
    _check_size(tree, where)
    return tree


def _parsed_at_once(text: str) -> Any:
    """The tree of a long text; None if it is not JSON or not accepted."""
    from pydantic_core import from_json  # noqa: PLC0415 - writers of JSON do without

    with suppress(ValueError):
        return from_json(text, allow_inf_nan=False)
    return None


def _parsed(text: str, where: str) -> Any:
    """See `parse_json`."""
    try:
        return json.loads(text, object_pairs_hook=_mapping, parse_constant=_no_number)
    except JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise NotJSONError(f"not JSON: {_lowered(error.msg)}", where=place, todo="write it again") from None
    except _RefusedError as refused:
        what, todo, place = _explained(text, where, *refused.args)
        raise DocumentError(what, where=place, todo=todo) from None
    except RecursionError:
        raise DocumentError("is nested too deeply", where=where, todo="flatten it") from None
    except ValueError:
        # Python converts no integer of more than 4,300 digits.
        raise DocumentError("a number has thousands of digits", where=where, todo="write fewer") from None


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
        entry = _below(text, at, part, decode)
        # A part that does not exist is the label of a union.
        if entry is not None:
            line_at, at = entry
    return text.count("\n", 0, line_at) + 1


def _below(text: str, at: int, part: int | str, decode: Any) -> tuple[int, int] | None:
    """Positions of the key (or entry) `part` of the collection at `at`, and of its value; None if there is no such key.
    """
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
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RefusedError("twice", next(key for i, key in enumerate(keys) if key in keys[:i]))
    return mapping


def _no_number(word: str) -> NoReturn:
    raise _RefusedError("number", word)


def _explained(text: str, where: str, kind: str, word: str) -> tuple[str, str, str]:
    """The fault, its remedy and its place. The parser does not report the place, so the text is searched for it."""
    if kind == "number":
        # Strings are blanked, so that no word in them is taken for a number.
        match = _WORD.search(_TEXTS.sub(lambda string: " " * len(string[0]), text))
        return f"{word} is not a number of JSON", "write null", _place(text, where, match)
    shown = word if len(word) <= 40 else f"{word[:30]}...{word[-7:]}"
    return f"key {shown!r} appears twice", "keep one of them", _place(text, where, _repeated(text, word))


def _repeated(text: str, key: str) -> re.Match[str] | None:
    """The second occurrence of a key in one mapping; None if escapes hide it."""
    depths: list[bool] = []
    for match in re.finditer(r'"(?:[^"\\]|\\.)*+"(?P<colon>[ \t\r\n]*:)?|[{}]', text, re.DOTALL):
        token = match[0]
        if token == "{":
            depths.append(False)
        elif token == "}":
            depths.pop()
        elif match["colon"] is not None and json.loads(token[: -len(match["colon"])]) == key:
            if depths[-1]:
                return match
            depths[-1] = True
    return None


def _place(text: str, where: str, match: re.Match[str] | None) -> str:
    if match is None:
        return where
    line = text.count("\n", 0, match.start()) + 1
    return f"{where}:{line}:{match.start() - text.rfind(chr(10), 0, match.start())}"


def _check_size(tree: object, where: str) -> None:
    """Raise DocumentError if there are too many levels, or too many keys in one mapping."""
    level: list[Any] = [[tree]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            value
            for collection in level
            for value in (collection.values() if isinstance(collection, dict) else collection)
            if type(value) is dict or type(value) is list
        ]
        if not level:
            return
        if any(len(value) > MAX_KEYS and type(value) is dict for value in level):
            what = f"a mapping has more than {MAX_KEYS:,} keys"
            raise DocumentError(what, where=where, todo="write fewer")
    raise DocumentError("is nested too deeply", where=where, todo="flatten it")


def _check_characters(tree: object, text: str, where: str) -> None:
    """Refuse half of a surrogate pair: two escapes may encode one character, but half of them is not a character."""
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        place = _place(text, where, _HALF.search(text))
        raise DocumentError("contains half of a character", where=place, todo="write it without") from None


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""DEL and the control characters C1, marks of the direction of text, and surrogates, which UTF-8 does not have."""


def json_text(
    tree: object,
    *,
    indent: int | None = 2,
    ascii_only: bool = False,
    allow_nan: bool = False,
    default: Callable[[object], Any] | None = None,
) -> str:
    """Write a tree as JSON with a line end; letters of all languages stay, control characters are escaped.

    A parser reads the same values as without escapes. Bytes of a file name that are not UTF-8 become the same text as
    in YAML, such as `\\\\udcff`, since many readers refuse surrogates.

    Parameters
    ----------
    indent
        Columns per level; None: one line without spaces.
    ascii_only
        Escape all letters beyond ASCII, for programs that take no others.
    default
        Makes a plain value of one that JSON does not know.

    Raises
    ------
    ValueError
        A number is not finite, and that is not allowed.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        tree,
        indent=indent,
        ensure_ascii=ascii_only,
        allow_nan=allow_nan,
        separators=separators,
        default=default,
    )
    return harmless(text)


def harmless(text: str) -> str:
    """JSON with a line end, and with escapes for what a terminal obeys."""
    if text.isascii() and "\x7f" not in text:
        return text + "\n"
    # These characters occur in strings only: JSON has no other place for them.
    return _OBEYED.sub(_escaped, text) + "\n"


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return ("\\\\" if "\ud800" <= char <= "\udfff" else "\\") + f"u{ord(char):04x}"
