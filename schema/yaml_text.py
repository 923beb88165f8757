"""YAML text to and from plain trees of dicts, lists and scalars.

Reading follows the core schema of YAML 1.2 with four things refused, each with its line: aliases
(a document of a kilobyte can stand for gigabytes), tags, duplicate keys and keys that are no text.
Dates, `yes` and `12:30` stay text. Writing quotes whatever any reader, of YAML 1.1 or 1.2, could
take for something else than text.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import yaml

from vani.errors import DocumentError

__all__ = ["Tree", "emit", "line_of", "parse"]

if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Tree: TypeAlias = "dict[str, Any] | list[Any] | str | int | float | bool | None"

_TEXT = "tag:yaml.org,2002:str"
_PLAIN = "plain"
_MAX_DEPTH = 100
_MAX_NODES = 1_000_000
"""Of libyaml, each takes 10 us and 400 bytes: a short text can hold one per two bytes."""
_MAX_KEYS = 100_000
"""Of one mapping: each that its schema does not know becomes an error of a kilobyte."""
_MAX_ENTRIES = 12_000_000
"""Lines and commas of a text that `emit` wrote; each takes at most 1 us and 250 bytes. A profile of 60 MB has 4e6."""
_SHORT = 1 << 20
_LIST = "tag:yaml.org,2002:seq"
_MAPPING = "tag:yaml.org,2002:map"

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0x[0-9a-fA-F]+|0o[0-7]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

# What is written without quotes. Every reader takes it for text unless it is one of _RESERVED.
_BARE = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./+()% -]*[A-Za-z0-9_./+()%-])?")
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class _TooMany(Exception):  # noqa: N818 - becomes a DocumentError
    """The text holds more nodes than are read."""


class _Nodes(_Loader):
    """Yields nodes whose scalars are still unresolved: `_scalar` decides what they are."""

    depth = 0
    nodes = 0

    def resolve(self, kind: type[yaml.Node], _value: object, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _TEXT
        return _LIST if kind is yaml.SequenceNode else _MAPPING

    # Called before and after every node. libyaml's composer recurses in C, without a limit of its own.
    def descend_resolver(self, _parent: object, _index: object) -> None:
        self.depth += 1
        self.nodes += 1
        if self.depth > _MAX_DEPTH:
            raise RecursionError
        if self.nodes > _MAX_NODES:
            raise _TooMany

    def ascend_resolver(self) -> None:
        self.depth -= 1


def parse(text: str, where: str) -> Tree:
    """Read one YAML document; `where` stands in front of every error.

    Raises
    ------
    DocumentError
        Not YAML, or YAML that is refused; the message begins with `where:line`.
    """
    if text.count("\n") + text.count(",") > _MAX_ENTRIES:
        raise DocumentError(
            f"has more than {_MAX_ENTRIES:,} lines and commas",
            where=where,
            todo="write fewer files (`--files N`)",
        )
    tree = _parse_own(text)
    if tree is not None:
        return tree
    try:
        root = _compose(text, where)
        _refuse_aliases(text, where)
        return None if root is None else _build(root, where)
    except RecursionError:
        raise DocumentError("is nested too deeply", where=where, todo="flatten it") from None


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path`, or of the last part of `path` that exists.

    Parts that do not exist are passed over, so that the labels which pydantic puts into the
    location of an error in a union do no harm. 1 where the text is no YAML.
    """
    if len(text) > _SHORT and (lines := _asked_lines(text)) is not None:
        return _line_in(lines, path)
    try:
        # A policy asks for hundreds of lines of one short text; the tree of a long one is not worth its memory.
        node = _composed(text) if len(text) <= _SHORT else _compose(text, "")
    except DocumentError:
        return 1
    line = 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    node, line = value, key.start_mark.line + 1
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


@functools.lru_cache(maxsize=1)
def _asked_lines(text: str) -> list[_Line] | None:
    return _own_lines(text)


@functools.lru_cache(maxsize=1)
def _composed(text: str) -> yaml.Node | None:
    return _compose(text, "")


def _compose(text: str, where: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Nodes(text)
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(f"not YAML: {error.problem or error.context}", where=where + line) from error
    except yaml.YAMLError as error:
        raise DocumentError(f"not YAML: {getattr(error, 'reason', error)}", where=where) from error
    except _TooMany:
        raise DocumentError(
            f"has more than {_MAX_NODES:,} keys and values, and not in the form that Vani writes",
            where=where,
            todo="use the file as Vani wrote it, or write fewer files (`--files N`)",
        ) from None
    finally:
        if loader is not None:
            loader.dispose()
    return node


def _refuse_aliases(text: str, where: str) -> None:
    if re.search(r"(?:^|[\s\[\]{},:])\*", text) is None:
        return
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise DocumentError(
                f"alias *{event.anchor} is not accepted",
                where=_place(where, event),
                todo="write the value out",
            )


def _place(where: str, marked: yaml.Node | yaml.Event) -> str:
    mark = marked.start_mark
    return f"{where}:{mark.line + 1}" if mark is not None else where


def _build(node: yaml.Node, where: str) -> Tree:
    if isinstance(node, yaml.ScalarNode):
        if node.tag == _PLAIN:
            return _scalar(node.value)
        if node.tag == _TEXT:
            return str(node.value)
    elif isinstance(node, yaml.MappingNode):
        if node.tag == _MAPPING:
            return _build_mapping(node, where)
    elif node.tag == _LIST:
        return [_build(item, where) for item in node.value]
    raise DocumentError(
        f"tag {node.tag!r} is not accepted", where=_place(where, node), todo="write the value without it"
    )


def _build_mapping(node: yaml.MappingNode, where: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise DocumentError("a key must be text", where=_place(where, key))
        if key.value in mapping:
            raise DocumentError(
                f"key {key.value!r} is there twice", where=_place(where, key), todo="keep one of them"
            )
        mapping[key.value] = _build(value, where)
    if len(mapping) > _MAX_KEYS:
        what = f"a mapping has more than {_MAX_KEYS:,} keys"
        raise DocumentError(what, where=_place(where, node), todo="write fewer")
    return mapping


def _scalar(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    return float(text) if _NUMBER.fullmatch(text) else text


# --- reading what `emit` wrote ------------------------------------------------------------------
#
# libyaml needs 50 s for a profile of 50,000 files, this 6 s. What `emit` writes is so narrow that
# lines and the JSON decoder do: whatever is not exactly in that form, right or wrong, is left to libyaml.


class _Foreign(Exception):  # noqa: N818 - not an error: another reader's turn
    """The text is not in the form that `emit` writes."""


_LINE = re.compile(
    r'( *)(- )?(?:([A-Za-z_/][A-Za-z0-9_./+()%-]*|"(?:[^"\\]|\\.){0,900}"):(?= |$))?(?: ?(.+))?'
)
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[:,](?! )|(?<![0-9A-Za-z.])[A-Za-z_/](?:[A-Za-z0-9_./+()% -]*[A-Za-z0-9_./+()%-])?'
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:e[-+][0-9]{1,3})?")
_FLAT = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*: [-0-9a-z.+]+(?:, [A-Za-z_][A-Za-z0-9_]*: [-0-9a-z.+]+)*\}")
_HALF = re.compile(r"(\\+)u[dD][89a-fA-F]")
_WIDE = re.compile(r"(\\+)U([0-9a-fA-F]{8})")
_Line: TypeAlias = tuple[int, bool, "str | None", "str | None"]


def _parse_own(text: str) -> dict[str, Any] | None:
    """Read what `emit` wrote; None for any other text."""
    lines = _own_lines(text)
    if lines is None:
        return None
    try:
        tree, end = _own_mapping(lines, 0, 0)
    except (_Foreign, ValueError, RecursionError):
        return None
    return tree if end == len(lines) - 1 else None


def _own_lines(text: str) -> list[_Line] | None:
    """The lines of what `emit` wrote, and one behind them; None for most other texts."""
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
    lines: list[_Line] = []
    known: dict[str, _Line] = {}
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


def _line_in(lines: list[_Line], path: tuple[int | str, ...]) -> int:
    """See `line_of`; `lines` are those of what `emit` wrote."""
    at, indent, found = 0, 0, 1
    for part in path:
        child = _entry(lines, at, indent, part)
        if child is None:
            continue
        found = child + 1
        _, _, key, rest = lines[child]
        if isinstance(part, int):
            # The keys of an entry stand behind its dash.
            at, indent = child, indent + 2
            if key is None:
                break
        elif rest is not None:
            break
        else:
            at = child + 1
            indent = lines[at][0]
    return found


def _entry(lines: list[_Line], at: int, indent: int, part: int | str) -> int | None:
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
            behind = first and dash and depth == indent - 2
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


def _own_mapping(lines: list[_Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    """The mapping whose keys stand at `indent`, from line `at`; and the line behind it."""
    mapping: dict[str, Any] = {}
    first = True
    while True:
        depth, dash, key, rest = lines[at]
        # The first key of an entry of a list stands behind its dash, two columns further left.
        if (depth != indent or dash) and not (first and dash and depth == indent - 2):
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
        elif lines[at][0] == indent + 2 and not lines[at][1]:
            mapping[name], at = _own_mapping(lines, at, indent + 2)
        else:
            mapping[name], at = _own_list(lines, at, indent)
    if first or lines[at][0] > indent or len(mapping) > _MAX_KEYS:
        raise _Foreign
    return mapping, at


def _own_list(lines: list[_Line], at: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while True:
        depth, dash, key, rest = lines[at]
        if depth != indent or not dash:
            break
        if key is not None:
            item, at = _own_mapping(lines, at, indent + 2)
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
    elif _BARE.fullmatch(text):
        value = _WORDS.get(text, text)
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
    if token in _WORDS or token in (":", ","):
        raise _Foreign
    return f'"{token}"'


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _Foreign
    return mapping


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


# --- writing ------------------------------------------------------------------------------------

WIDTH = 128
_FLOW_DEPTH = 3


def emit(tree: Mapping[str, object]) -> str:
    """Write a tree as YAML text that ends in a newline; the same tree gives the same text.

    Collections that fit into `WIDTH` columns stand on one line. Floats are rounded to nine
    significant digits, or to whole numbers from 1e8 on. Tuples are lists, enumerations their values,
    paths text. Characters that are no Unicode (lone surrogates) cannot be written in YAML and become
    text such as `\\udc80`.

    Raises
    ------
    TypeError
        The tree holds something else than mappings, lists and scalars.
    """
    if not tree:
        return "{}\n"
    lines: list[str] = []
    _emit_mapping(tree, "", "", lines)
    lines.append("")
    return "\n".join(lines)


def _emit_mapping(tree: Mapping[Any, object], first: str, rest: str, lines: list[str]) -> None:
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
            _emit_mapping(value, rest + "  ", rest + "  ", lines)
        else:
            _emit_list(cast("Collection[object]", value), rest, lines)


def _emit_list(items: Collection[object], rest: str, lines: list[str]) -> None:
    for item in items:
        short = _short(item, WIDTH - len(rest) - 2, 0)
        if short is not None:
            lines.append(f"{rest}- {short}")
        elif isinstance(item, Mapping):
            _emit_mapping(item, rest + "- ", rest + "  ", lines)
        else:
            lines.append(f"{rest}-")
            _emit_list(cast("Collection[object]", item), rest + "  ", lines)


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
    """Scalars that are subclasses of the plain ones, or stand for one."""
    if isinstance(value, Enum):
        value = value.value
    for kind, write in _SCALARS.items():
        if isinstance(value, kind):
            return write(kind(value))
    if isinstance(value, PurePath):
        return _text(str(value))
    raise TypeError(f"a document cannot hold {type(value).__name__}")


def _float(value: float) -> str:
    if math.isfinite(value):
        # Of moments since 1970 and large rates, nine digits would not keep the whole seconds and bytes.
        short = float(f"{value:.9g}") if abs(value) < 1e8 else float(round(value))
        text = repr(short)
        # YAML 1.1 takes `1e-07` for text: a float needs a point.
        return text if "." in text else text.replace("e", ".0e")
    return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")


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


# The keys of a document are few and come again for every file.
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
