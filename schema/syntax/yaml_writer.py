"""Plain trees of dicts, lists and scalars to YAML text.

Collections are in block style, unless they fit on one line. Quotes whatever any reader, of YAML 1.1 or 1.2, could
take for something other than text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, cast

_INDENT: Final = "  "
_DASH: Final = "- "
_BARE: Final = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./+()% -]*[A-Za-z0-9_./+()%-])?")
"""Text that needs no quotes, unless it is one of the reserved words."""
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

WIDTH = 128
_FLOW_DEPTH = 3


def yaml_text(tree: Mapping[str, object]) -> str:
    """Write a tree as YAML text that ends in a newline; the same tree gives the same text.

    Collections that fit into `WIDTH` columns take one line. Floats are rounded to nine
    significant digits, or to whole numbers from 1e8 on. Tuples are lists, enumerations their values,
    paths and times text. Characters that are no Unicode (lone surrogates) cannot be written in YAML and become
    text such as `\\udc80`.

    Raises
    ------
    TypeError
        The tree contains something else than mappings, lists and scalars.
    """
    if not tree:
        return "{}\n"
    lines: list[str] = []
    _write_mapping(tree, "", "", lines)
    lines.append("")
    return "\n".join(lines)


def _write_mapping(tree: Mapping[Any, object], first: str, rest: str, lines: list[str]) -> None:
    """Append `tree` in block style; its first line begins with `first`, all others with `rest`."""
    indent = first
    for key, value in tree.items():
        name = _keys.get(key) or _key(key)
        if len(name) > 1000:  # YAML ends its search for the colon of a key after 1024 characters
            lines.append(f"{indent}? {name}")
            head = f"{rest}:"
        else:
            head = f"{indent}{name}:"
        indent = rest
        short = _short(value, WIDTH - len(head) - 1, 0)
        if short is not None:
            lines.append(f"{head} {short}")
            continue
        lines.append(head)
        if isinstance(value, Mapping):
            _write_mapping(value, rest + _INDENT, rest + _INDENT, lines)
        else:
            _write_list(cast("Collection[object]", value), rest, lines)


def _write_list(items: Collection[object], rest: str, lines: list[str]) -> None:
    for item in items:
        short = _short(item, WIDTH - len(rest) - len(_DASH), 0)
        if short is not None:
            lines.append(f"{rest}{_DASH}{short}")
        elif isinstance(item, Mapping):
            _write_mapping(item, rest + _DASH, rest + _INDENT, lines)
        else:
            lines.append(rest + _DASH.rstrip())
            _write_list(cast("Collection[object]", item), rest + _INDENT, lines)


def _short(value: object, room: int, depth: int) -> str | None:
    """`value` on one line; None for a collection that needs more than `room` columns."""
    write = _SCALARS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _short_list(value, room, depth)
    if isinstance(value, (dict, Mapping)):
        return _short_mapping(value, room, depth)
    return _other(value)


def _short_mapping(mapping: Mapping[Any, object], room: int, depth: int) -> str | None:
    if depth == _FLOW_DEPTH or len(mapping) * 6 > room:  # `a: 1, ` at least
        return None if mapping else "{}"
    parts = []
    for key, value in mapping.items():
        write = _SCALARS.get(type(value))
        short = write(value) if write else _short(value, room, depth + 1)
        if short is None:
            return None
        part = f"{_keys.get(key) or _key(key)}: {short}"
        room -= len(part) + 2
        if room < 0:
            return None
        parts.append(part)
    return "{" + ", ".join(parts) + "}"


def _short_list(items: Collection[object], room: int, depth: int) -> str | None:
    if depth == _FLOW_DEPTH or len(items) * 3 > room:
        return None if items else "[]"
    parts = []
    for item in items:
        short = _short(item, room, depth + 1)
        if short is None:
            return None
        room -= len(short) + 2
        if room < 0:
            return None
        parts.append(short)
    return "[" + ", ".join(parts) + "]"


def _other(value: object) -> str:
    """Write scalars of other types: subclasses of plain types, enumerations, paths and times."""
    if isinstance(value, Enum):
        value = value.value
    for kind, write in _SCALARS.items():
        if isinstance(value, kind):
            return write(kind(value))
    if isinstance(value, PurePath):
        return _text(str(value))
    if isinstance(value, datetime):
        return _text(value.isoformat())
    raise TypeError(f"a document cannot contain {type(value).__name__}")


def _float(value: float) -> str:
    if math.isfinite(value):
        text = repr(rounded(value))
        # YAML 1.1 takes `1e-07` for text: a float needs a point.
        return text if "." in text else text.replace("e", ".0e")
    return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")


def rounded(value: float) -> float:
    """A finite float as `yaml_text` writes it, so that other formats contain the same numbers."""
    # Nine digits would lose whole seconds of Unix times and whole bytes of large rates.
    return float(f"{value:.9g}") if abs(value) < 1e8 else float(round(value))


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return f"\\\\u{code:04x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _text(value: str) -> str:
    if _BARE.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return '"' + "".join(map(_escape, value)) + '"'


# A document has few distinct keys, repeated for every file.
_keys: dict[object, str] = {}


def _key(key: object) -> str:
    if type(key) is not str:
        return _other(key)
    name = _text(key)
    if len(_keys) < 10_000:
        _keys[key] = name
    return name


_SCALARS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    str: _text,
    type(None): lambda _: "null",
}
