"""YAML or JSON text to plain trees of dicts, lists and scalars.

Follows the core schema of YAML 1.2 with four things refused, each with its line: aliases (a document of a kilobyte can
stand for gigabytes), tags, duplicate keys and keys that are no text. Dates, `yes` and `12:30` stay text.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING

from vani.errors import DocumentError
from vani.schema.json_reading import NotJSONError, begins_as_json, line_in_json, parse_json
from vani.schema.yaml.layout import Tree
from vani.schema.yaml.read_own import Line, line_in, own_lines, parse_own

__all__ = ["line_of", "parse"]

if TYPE_CHECKING:
    import yaml

_MAX_ENTRIES = 12_000_000
"""Lines and commas of what `yaml_text` wrote; each takes at most 1 us and 250 bytes. A profile of 60 MB has 4e6."""
_SHORT = 1 << 20


def parse(text: str, where: str) -> Tree:
    """Read one document in YAML or JSON; `where` stands in front of every error.

    Raises
    ------
    DocumentError
        Neither, or one that is refused; the message begins with `where:line`.
    """
    if begins_as_json(text):
        return _in_braces(text, where)
    if text.count("\n") + text.count(",") > _MAX_ENTRIES:
        raise DocumentError(
            f"has more than {_MAX_ENTRIES:,} lines and commas",
            where=where,
            todo="write fewer files (`--files N`)",
        )
    tree = parse_own(text)
    if tree is not None:
        return tree
    from vani.schema.yaml.any_form import parse_any  # noqa: PLC0415 - loads PyYAML

    return parse_any(text, where)


def _in_braces(text: str, where: str) -> Tree:
    """JSON, or a mapping in YAML that is written in braces."""
    try:
        tree: Tree = parse_json(text, where)
    except NotJSONError:
        if where.endswith(".json") or len(text) > _SHORT:
            raise
        from vani.schema.yaml.any_form import parse_any  # noqa: PLC0415 - loads PyYAML

        with suppress(DocumentError):
            return parse_any(text, where)
        raise
    return tree


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path`, or of the last part of `path` that exists.

    Parts that do not exist are passed over, so that the labels which pydantic puts into the
    location of an error in a union do no harm. 1 where the text is no YAML.
    """
    if begins_as_json(text):
        with suppress(ValueError, RecursionError):
            return line_in_json(text, path)
    if len(text) > _SHORT and (lines := _asked_lines(text)) is not None:
        return line_in(lines, path)
    from vani.schema.yaml.any_form import compose, line_below  # noqa: PLC0415 - loads PyYAML

    try:
        # A policy asks for hundreds of lines of one short text; the tree of a long one is not worth its memory.
        node = _composed(text) if len(text) <= _SHORT else compose(text, "")
    except DocumentError:
        return 1
    return line_below(node, path)


@functools.lru_cache(maxsize=1)
def _asked_lines(text: str) -> list[Line] | None:
    return own_lines(text)


@functools.lru_cache(maxsize=1)
def _composed(text: str) -> yaml.Node | None:
    from vani.schema.yaml.any_form import compose  # noqa: PLC0415 - loads PyYAML

    return compose(text, "")
