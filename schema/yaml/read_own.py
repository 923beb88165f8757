"""A fast reader of what the writer wrote.

libyaml needs 50 s for a profile of 50,000 files, this 6 s. What `yaml_text` writes is so narrow that lines and the JSON
decoder do: whatever is not exactly in that form, right or wrong, is left to libyaml.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias

from vani.schema.yaml.layout import BARE, DASH, NAME, STEP, WORDS, Tree

__all__ = ["MAX_KEYS", "Line", "line_in", "own_lines", "parse_own"]

MAX_KEYS: Final = 100_000
"""Of one mapping: each that its schema does not know becomes an error of a kilobyte."""


class _Foreign(Exception):  # noqa: N818 - not an error: another reader's turn
    """The text is not in the form that `yaml_text` writes."""


_LINE = re.compile(rf'( *)({DASH})?(?:({NAME}|"(?:[^"\\]|\\.){{0,900}}"):(?= |$))?(?: ?(.+))?')
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[:,](?! )|(?<![0-9A-Za-z.]){BARE.pattern}')
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:e[-+][0-9]{1,3})?")
_FLAT = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*: [-0-9a-z.+]+(?:, [A-Za-z_][A-Za-z0-9_]*: [-0-9a-z.+]+)*\}")
_HALF = re.compile(r"(\\+)u[dD][89a-fA-F]")
_WIDE = re.compile(r"(\\+)U([0-9a-fA-F]{8})")
Line: TypeAlias = tuple[int, bool, "str | None", "str | None"]


def parse_own(text: str) -> dict[str, Any] | None:
    """Read what `yaml_text` wrote; None for any other text."""
    lines = own_lines(text)
    if lines is None:
        return None
    try:
        tree, end = _own_mapping(lines, 0, 0)
    except (_Foreign, ValueError, RecursionError):
        return None
    return tree if end == len(lines) - 1 else None


def own_lines(text: str) -> list[Line] | None:
    """The lines of what `yaml_text` wrote, and one behind them; None for most other texts."""
    if not text.endswith("\n"):
        return None
    if "\\" in text:
        # Text of JSON, but for characters beyond 16 bits and halves of such, which YAML has not.
        if any(len(found[1]) % 2 for found in _HALF.finditer(text)):
            return None
        text = _WIDE.sub(_as_halves, text)
    written = text[:-1].split("\n")
    if not "".join(written).isprintable():
        return None
    lines: list[Line] = []
    known: dict[str, Line] = {}
    for line in written:
        # Two lines of three are not the first of their kind: `  format: bin`.
        found = known.get(line)
        if found is None:
            match = _LINE.fullmatch(line)
            if match is None:
                return None
            indent, dash, key, rest = match.groups()
            found = known[line] = (len(indent), dash is not None, key, rest)
        lines.append(found)
    lines.append((-1, False, None, None))
    return lines


def _as_halves(match: re.Match[str]) -> str:
    code = int(match[2], 16)
    # An even number of backslashes stands for half as many, and escapes nothing.
    if len(match[1]) % 2 == 0 or not 0x10000 <= code <= 0x10FFFF:
        return match[0]
    return match[1][1:] + json.dumps(chr(code))[1:-1]


def line_in(lines: list[Line], path: tuple[int | str, ...]) -> int:
    """See `line_of`; `lines` are those of what `yaml_text` wrote."""
    at, indent, found = 0, 0, 1
    for part in path:
        child = _entry(lines, at, indent, part)
        if child is None:
            continue
        found = child + 1
        _, _, key, rest = lines[child]
        if isinstance(part, int):
            # The keys of an entry stand behind its dash.
            at, indent = child, indent + STEP
            if key is None:
                break
        elif rest is not None:
            break
        else:
            at = child + 1
            indent = lines[at][0]
    return found


def _entry(lines: list[Line], at: int, indent: int, part: int | str) -> int | None:
    """The line of a key, or of an entry of a list by its number, of the collection at `indent` from line `at` on."""
    number = 0
    first = True
    while True:
        depth, dash, key, _ = lines[at]
        if isinstance(part, int):
            if depth < indent or (depth == indent and not dash):
                return None
            if depth == indent:
                if number == part:
                    return at
                number += 1
        else:
            own = depth == indent and not dash
            # The first key of an entry of a list stands behind its dash.
            behind = first and dash and depth == indent - STEP
            if not own and not behind and (depth < indent):
                return None
            if (own or behind) and key is not None and _name(key) == part:
                return at
        first = False
        at += 1


def _name(key: str) -> str:
    if key[0] != '"':
        return key
    return str(json.loads(key)) if "\\" in key else key[1:-1]


def _own_mapping(lines: list[Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    """The mapping whose keys stand at `indent`, from line `at`; and the line behind it."""
    mapping: dict[str, Any] = {}
    first = True
    while True:
        depth, dash, key, rest = lines[at]
        # The first key of an entry of a list stands behind its dash, two columns further left.
        if (depth != indent or dash) and not (first and dash and depth == indent - STEP):
            break
        if key is None:
            raise _Foreign
        first = False
        name = _name(key)
        if name in mapping:
            raise _Foreign
        at += 1
        if rest is not None:
            mapping[name] = _own_value(rest)
        elif lines[at][0] == indent + STEP and not lines[at][1]:
            mapping[name], at = _own_mapping(lines, at, indent + STEP)
        else:
            mapping[name], at = _own_list(lines, at, indent)
    if first or lines[at][0] > indent or len(mapping) > MAX_KEYS:
        raise _Foreign
    return mapping, at


def _own_list(lines: list[Line], at: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while True:
        depth, dash, key, rest = lines[at]
        if depth != indent or not dash:
            break
        if key is not None:
            item, at = _own_mapping(lines, at, indent + STEP)
            items.append(item)
        elif rest is not None:
            items.append(_own_value(rest))
            at += 1
        else:
            raise _Foreign
    if not items or depth > indent:
        raise _Foreign
    return items, at


def _own_value(text: str) -> Tree:
    if text in _own_values:
        return _own_values[text]
    value: Tree
    if text[0] == "{" and _FLAT.fullmatch(text):
        value = _own_flat(text)
    elif text[0] in '{["':
        value = _DECODER.decode(_TOKEN.sub(_json_token, text))
    elif BARE.fullmatch(text):
        value = WORDS.get(text, text)
    elif _JSON_NUMBER.fullmatch(text):
        value = float(text) if "." in text or "e" in text else int(text)
    else:
        raise _Foreign
    if len(_own_values) < 10_000 and not isinstance(value, (dict, list)):
        _own_values[text] = value
    return value


_own_values: dict[str, Tree] = {}


def _own_flat(text: str) -> dict[str, Any]:
    """A mapping of names to numbers and null, which most lines of a profile are."""
    mapping: dict[str, Any] = {}
    parts = text[1:-1].split(", ")
    for part in parts:
        name, _, value = part.partition(": ")
        mapping[name] = _own_values[value] if value in _own_values else _own_value(value)
    if len(mapping) < len(parts):
        raise _Foreign
    return mapping


def _json_token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"' or token in ("null", "true", "false"):
        return token
    if token in WORDS or token in (":", ","):
        raise _Foreign
    return f'"{token}"'


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _Foreign
    return mapping


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
