"""YAML of any form to plain trees, by way of libyaml's nodes, which know their lines.

Loading PyYAML takes longer than reading what Vani wrote, so that `read.py` comes here for other texts only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from vani.errors import DocumentError
from vani.schema.yaml.layout import WORDS, Tree
from vani.schema.yaml.read_own import MAX_KEYS

__all__ = ["compose", "line_below", "parse_any"]

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

    # Called before and after every node. libyaml's composer recurses in C, and knew no limit before 0.2.6.
    def descend_resolver(self, _parent: object, _index: object) -> None:
        self.depth += 1
        self.nodes += 1
        if self.depth > _MAX_DEPTH:
            raise RecursionError
        if self.nodes > _MAX_NODES:
            raise _TooMany

    def ascend_resolver(self) -> None:
        self.depth -= 1


def parse_any(text: str, where: str) -> Tree:
    """See `vani.schema.yaml.read.parse`."""
    try:
        root = compose(text, where)
        _refuse_aliases(text, where)
        return None if root is None else _build(root, where)
    except RecursionError:
        raise _nested_too_deeply(where) from None


def line_below(node: yaml.Node | None, path: tuple[int | str, ...]) -> int:
    """Find the line of the value at `path` below the root, or of the last part of `path` that exists."""
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


def compose(text: str, where: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Nodes(text)
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        what = error.problem or error.context
        # libyaml 0.2.6 has a limit of its own, 1000, which its scanner meets before a node is composed.
        if what == "exceeded maximum nesting depth":
            raise _nested_too_deeply(where + line) from error
        raise DocumentError(f"not YAML: {what}", where=where + line) from error
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


def _nested_too_deeply(where: str) -> DocumentError:
    return DocumentError("is nested too deeply", where=where, todo="flatten it")


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
