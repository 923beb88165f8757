"""YAML text to plain trees of dicts, lists and scalars.

Follows the core schema of YAML 1.2 with four things refused, each with its line: aliases (a document of a kilobyte can
stand for gigabytes), tags, duplicate keys and keys that are no text. Dates, `yes` and `12:30` stay text.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import yaml

from vani.errors import DocumentError
from vani.schema.yaml.layout import WORDS, Tree
from vani.schema.yaml.read_own import MAX_KEYS, Line, line_in, own_lines, parse_own

__all__ = ["line_of", "parse"]

if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TEXT = "tag:yaml.org,2002:str"
_PLAIN = "plain"
_LIST = "tag:yaml.org,2002:seq"
_MAPPING = "tag:yaml.org,2002:map"

_MAX_DEPTH = 100
_MAX_NODES = 1_000_000
"""Of libyaml, each takes 10 us and 400 bytes: a short text can hold one per two bytes."""
_MAX_ENTRIES = 12_000_000
"""Lines and commas of what `yaml_text` wrote; each takes at most 1 us and 250 bytes. A profile of 60 MB has 4e6."""
_SHORT = 1 << 20

_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0x[0-9a-fA-F]+|0o[0-7]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


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
    tree = parse_own(text)
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
        return line_in(lines, path)
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
def _asked_lines(text: str) -> list[Line] | None:
    return own_lines(text)


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
    if len(mapping) > MAX_KEYS:
        what = f"a mapping has more than {MAX_KEYS:,} keys"
        raise DocumentError(what, where=_place(where, node), todo="write fewer")
    return mapping


def _scalar(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if text in WORDS:
        return WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    return float(text) if _NUMBER.fullmatch(text) else text
