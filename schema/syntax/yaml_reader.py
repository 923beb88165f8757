"""YAML text to plain trees, built from the events of libyaml's parser, which carry line numbers.

Follows the core schema of YAML 1.2 with four things refused, each with its line: aliases (a document of a kilobyte can
expand to gigabytes), tags, duplicate keys and keys that are not text. Dates, `yes` and `12:30` stay text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import yaml

from vani.errors import DocumentError
from vani.schema.syntax.json_reader import MAX_DEPTH, MAX_ENTRIES, MAX_KEYS

_Parser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Event: TypeAlias = Any
"""An event of PyYAML, whose types do not say which attributes it has."""

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
        return _scalar(event.value) if event.implicit[0] else str(event.value)

    def _mapping(self, begin: _Event, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        get_event = self._next
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
                mapping[key] = _scalar(value.value) if value.implicit[0] else value.value
            else:
                mapping[key] = self.value(value, depth + 1)
            if len(mapping) > MAX_KEYS:
                what = f"a mapping has more than {MAX_KEYS:,} keys"
                raise DocumentError(what, where=self._place(begin), todo="write fewer")
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


def _nested_too_deeply(where: str) -> DocumentError:
    return DocumentError("is nested too deeply", where=where, todo="flatten it")
