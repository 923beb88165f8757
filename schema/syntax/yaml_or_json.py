"""Text of a document in YAML or JSON to a plain tree of dicts, lists and scalars."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from vani.errors import DocumentError
from vani.schema.syntax.json_reader import NotJSONError, begins_as_json, line_in_json, parse_json
from vani.schema.syntax.yaml_reader import Tree, line_in_yaml, parse_yaml

_SHORT: Final = 1 << 20
"""Longer texts that begin as JSON are not tried as YAML."""


def parse(text: str, where: str) -> Tree:
    """Read one document; every error begins with `where`.

    Raises
    ------
    DocumentError
        Neither YAML nor JSON, or something that is refused; the message begins with `where:line`.
    """
    if not begins_as_json(text):
        return parse_yaml(text, where)
    try:
        tree: Tree = parse_json(text, where)
    except NotJSONError:
        # YAML, too, has mappings in braces.
        if not where.endswith(".json") and len(text) <= _SHORT:
            with suppress(DocumentError):
                return parse_yaml(text, where)
        raise
    return tree


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the value at `path`, or of the last part of `path` that exists.

    Parts that do not exist are passed over: pydantic puts the labels of unions into the location of an error.
    1 where the text is neither YAML nor JSON.
    """
    if begins_as_json(text):
        with suppress(ValueError, RecursionError):
            return line_in_json(text, path)
    return line_in_yaml(text, path)
