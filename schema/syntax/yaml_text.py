"""YAML and JSON text to plain trees, and trees to YAML text. The events of libyaml's parser carry line numbers.

Follows the core schema of YAML 1.2 with four things refused, each with its line: aliases (a document of a kilobyte can
expand to gigabytes), tags, duplicate keys and keys that are not text. Dates, `yes` and `12:30` stay text. Written
collections are in block style, unless they fit on one line. Quotes whatever any reader, of YAML 1.1 or 1.2, could take
for something other than text.

JSON is parsed by pydantic's parser, which is much faster, and refused for the same reasons. It keeps the last of two
equal keys, so the standard library searches short texts for these; a program that writes megabytes writes no key twice.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final, TypeAlias, cast

import yaml
from pydantic_core import from_json

from vani.errors import DocumentError

_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Event: TypeAlias = Any
"""An event of PyYAML, whose types do not say which attributes it has."""

MAX_KEYS: Final = 100_000
"""Most keys of one mapping: each that its schema does not know becomes an error of a kilobyte."""
MAX_DEPTH: Final = 100
"""Most levels of mappings and lists."""
MAX_ENTRIES: Final = 12_000_000
"""Most values of a document; each takes at most 250 bytes of memory. A profile of 60 MB has 4e6."""

Tree: TypeAlias = "dict[str, Any] | list[Any] | str | int | float | bool | None"

_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0x[0-9a-fA-F]+|0o[0-7]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAGS: Final = {
    yaml.ScalarEvent: "tag:yaml.org,2002:str",
    yaml.SequenceStartEvent: "tag:yaml.org,2002:seq",
    yaml.MappingStartEvent: "tag:yaml.org,2002:map",
}
"""Tags that repeat what the text itself shows."""


def parse_yaml(text: str, where: str) -> Tree:
    """Read one document; every error begins with `where`.

    Raises
    ------
    DocumentError
        Not YAML, or something that is refused; the message begins with `where:line`.
    """
    if text.count("\n") + text.count(",") > MAX_ENTRIES:
        raise _too_many("lines and commas", where)
    with _events(text, where) as parser:
        if parser.check_event(yaml.StreamEndEvent):
            return None
        parser.get_event()  # the beginning of the document
        tree = _Builder(parser, where).value(parser.get_event(), 0)
        parser.get_event()  # its end
        if not parser.check_event(yaml.StreamEndEvent):
            line = parser.get_event().start_mark.line + 1
            raise DocumentError("not YAML: but found another document", where=f"{where}:{line}")
        return tree


def line_in_yaml(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path`, or of the last part of `path` that exists.

    Parts that do not exist are passed over: pydantic puts the labels of unions into the location of an error.
    1 where the text is not YAML.
    """
    try:
        while True:
            line, depth = _deepest(text, path)
            if depth == len(path):
                return line
            path = (*path[:depth], *path[depth + 1 :])
    except DocumentError:
        return 1


def _deepest(text: str, path: tuple[int | str, ...]) -> tuple[int, int]:
    """The line of the deepest part of `path` that exists, and how many parts of the path lead to it."""
    with _events(text, "") as parser:
        if parser.check_event(yaml.StreamEndEvent):
            return 1, 0
        parser.get_event()
        line, event = 1, parser.get_event()
        for depth, part in enumerate(path):
            entry = _entry(parser, event, part)
            if entry is None:
                return line, depth
            line, event = entry
        return line, len(path)


def _entry(parser: Any, event: _Event, part: int | str) -> tuple[int, _Event] | None:
    """The line of a key or an index of the collection that began with `event`, and the event of its value."""
    if isinstance(event, yaml.MappingStartEvent):
        while not isinstance(key := parser.get_event(), yaml.MappingEndEvent):
            value = parser.get_event()
            if key.value == str(part):
                return key.start_mark.line + 1, value
            _pass_over(parser, value)
    elif isinstance(event, yaml.SequenceStartEvent):
        index = 0
        while not isinstance(value := parser.get_event(), yaml.SequenceEndEvent):
            if index == part:
                return value.start_mark.line + 1, value
            _pass_over(parser, value)
            index += 1
    return None


def _pass_over(parser: Any, event: _Event) -> None:
    """Read to the end of the value that began with `event`."""
    depth = 0
    while True:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth == 0:
            return
        event = parser.get_event()


@contextmanager
def _events(text: str, where: str) -> Iterator[Any]:
    """A parser positioned after the start of the stream; its errors become DocumentErrors."""
    parser = None
    try:
        parser = _Parser(text)
        parser.get_event()
        yield parser
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = error.problem or error.context
        # libyaml 0.2.6 has its own limit, 1000, which its scanner reaches before an event.
        if problem == "exceeded maximum nesting depth":
            raise _nested_too_deeply(where + line) from error
        raise DocumentError(f"not YAML: {problem}", where=where + line) from error
    except yaml.YAMLError as error:
        raise DocumentError(f"not YAML: {getattr(error, 'reason', error)}", where=where) from error
    finally:
        if parser is not None:
            parser.dispose()


class _Builder:
    """Makes the tree of a document from its events."""

    def __init__(self, parser: Any, where: str) -> None:
        self._next = parser.get_event
        self._where = where
        self._entries = 0
        # Most of a profile's numbers and words occur many times.
        self._scalar = lru_cache(4096)(_scalar)

    def value(self, event: _Event, depth: int) -> Tree:
        """The value that begins with `event`."""
        if depth > MAX_DEPTH:
            raise _nested_too_deeply(self._where)
        kind = type(event)
        if kind is yaml.AliasEvent:
            what = f"alias *{event.anchor} is not accepted"
            raise DocumentError(what, where=self._place(event), todo="write the value out")
        if event.tag is not None and event.tag not in ("!", _TAGS[kind]):
            what = f"tag {event.tag!r} is not accepted"
            raise DocumentError(what, where=self._place(event), todo="write the value without it")
        if kind is yaml.MappingStartEvent:
            return self._mapping(event, depth)
        if kind is yaml.SequenceStartEvent:
            return self._list(depth)
        return self._scalar(event.value) if event.implicit[0] else str(event.value)

    def _mapping(self, begin: _Event, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        get_event, scalar = self._next, self._scalar
        while True:
            event = get_event()
            if type(event) is not yaml.ScalarEvent:
                if type(event) is yaml.MappingEndEvent:
                    break
                raise DocumentError("a key must be text", where=self._place(event))
            key = event.value
            if key in mapping:
                what = f"key {key!r} appears twice"
                raise DocumentError(what, where=self._place(event), todo="keep one of them")
            value = get_event()
            if type(value) is yaml.ScalarEvent and value.tag is None:
                mapping[key] = scalar(value.value) if value.implicit[0] else value.value
            else:
                mapping[key] = self.value(value, depth + 1)
            if len(mapping) > MAX_KEYS:
                raise _too_many_keys(self._place(begin))
        self._count(len(mapping))
        return mapping

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self.value(event, depth + 1))
        self._count(len(items))
        return items

    def _count(self, entries: int) -> None:
        # A short text can have a value in every second byte.
        self._entries += entries
        if self._entries > MAX_ENTRIES:
            raise _too_many("keys and values", self._where)

    def _place(self, event: _Event) -> str:
        return f"{self._where}:{event.start_mark.line + 1}"


def _scalar(text: str) -> str | int | float | bool | None:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    return float(text) if _NUMBER.fullmatch(text) else text


def _too_many(things: str, where: str) -> DocumentError:
    todo = "write fewer files (`--files N`)"
    return DocumentError(f"has more than {MAX_ENTRIES:,} {things}", where=where, todo=todo)


def _too_many_keys(where: str) -> DocumentError:
    return DocumentError(f"a mapping has more than {MAX_KEYS:,} keys", where=where, todo="write fewer")


def _nested_too_deeply(where: str) -> DocumentError:
    return DocumentError("is nested too deeply", where=where, todo="flatten it")


_INDENT: Final = "  "
_DASH: Final = "- "
_BARE: Final = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./+()% -]*[A-Za-z0-9_./+()%-])?")
"""Text that needs no quotes, unless it is one of the reserved words."""
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

WIDTH = 128
_TABLES: Final = frozenset({"accesses"})
"""Lists whose entries take one line each, however long."""
_ANY_WIDTH: Final = 1 << 20
_FLOW_DEPTH = 3


def yaml_text(tree: Mapping[str, object]) -> str:
    """Write a tree as YAML text that ends in a newline; the same tree gives the same text.

    Collections that fit into `WIDTH` columns take one line, as does each entry of a table. Floats are rounded to nine
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
            width = _ANY_WIDTH if name in _TABLES else WIDTH
            _write_list(cast("Collection[object]", value), rest, lines, width)


def _write_list(items: Collection[object], rest: str, lines: list[str], width: int = WIDTH) -> None:
    for item in items:
        short = _short(item, width - len(rest) - len(_DASH), 0)
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


_SHORT: Final = 1 << 20
"""Characters; people write shorter texts. Longer ones that begin as JSON are not tried as YAML."""
_JSON: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*["}]')
"""Beginning of every document in JSON."""


def parse(text: str, where: str) -> Tree:
    """Read one document; every error begins with `where`.

    Raises
    ------
    DocumentError
        Neither YAML nor JSON, or something that is refused; the message begins with `where:line`.
    """
    if _JSON.match(text) is None:
        return parse_yaml(text, where)
    try:
        return parse_json(text, where)
    except NotJSONError:
        # YAML, too, has mappings in braces.
        if not where.endswith(".json") and len(text) <= _SHORT:
            with suppress(DocumentError):
                return parse_yaml(text, where)
        raise


class NotJSONError(DocumentError):
    """The text is not JSON."""


def parse_json(text: str, where: str) -> Tree:
    """Read JSON; every error begins with `where`.

    Raises
    ------
    NotJSONError
        The text is not JSON; the message begins with `where:line:column`.
    DocumentError
        A key appears twice, or there are too many keys in one mapping, too many values or too many levels.
    """
    if text.count(",") + text.count("{") + text.count("[") > MAX_ENTRIES:
        raise _too_many("commas and brackets", where)
    try:
        tree: Tree = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        problem, _, place = str(error).rpartition(" at line ")
        if problem.startswith("recursion"):
            raise _nested_too_deeply(where) from None
        place = f"{where}:{place.replace(' column ', ':')}"
        raise NotJSONError(f"not JSON: {problem}", where=place, todo="write it again") from None
    _check_size(tree, where)
    if len(text) <= _SHORT:
        try:
            json.loads(text, object_pairs_hook=_without_twins)
        except LookupError as error:
            parse_yaml(text, where)  # raises the same with the line
            raise DocumentError(f"key {error} appears twice", where=where, todo="keep one of them") from None
    return tree


def _without_twins(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise LookupError(next(key for at, key in enumerate(keys) if key in keys[:at])[:40])


def _check_size(tree: Tree, where: str) -> None:
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
            raise _too_many_keys(where)
    raise _nested_too_deeply(where)


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path` in YAML or JSON; see `line_in_yaml`, which reads both."""
    return line_in_yaml(text, path) if "\n" in text.strip() else 1
