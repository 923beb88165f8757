"""Documents as JSON on one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from vani.errors import InputError
from vani.garbage import collection_paused
from vani.schema.model import SparseModel
from vani.schema.syntax.json_writer import harmless, json_text
from vani.schema.syntax.yaml_writer import rounded


def document_json(document: BaseModel) -> str:
    """Write a document as JSON on one line, with the keys and the rounded numbers of its YAML.

    Raises
    ------
    InputError
        A plug-in's measure returned a number that is not finite, which JSON has not.
    """
    with collection_paused():
        try:
            tree = _plain(document)
        except ValueError:
            raise InputError(
                "contains a number that is not finite; JSON has none",
                where="extensions of the profile",
                todo="write YAML, or fix the plug-in that measured it",
            ) from None
        try:
            return harmless(to_json(tree).decode())
        except PydanticSerializationError:  # a file name that is not UTF-8
            return json_text(tree, indent=None)


def _plain(value: Any) -> Any:
    """A value as plain JSON data, with floats rounded as in YAML; raises ValueError for a number that is not finite.
    """
    if value is None or type(value) in (int, str, bool):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
        return rounded(value)
    if isinstance(value, BaseModel):
        values = value.__dict__
        absent = value.keys_left_out() if isinstance(value, SparseModel) else ()
        return {key: _plain(values[name]) for name, key in _keys(type(value)) if name not in absent}
    if isinstance(value, Mapping):
        return {_plain(key): _plain(below) for key, below in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, Iterable):
        return [_plain(entry) for entry in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a document cannot contain {type(value).__name__}")


@cache
def _keys(model: type[BaseModel]) -> list[tuple[str, str]]:
    """Names of a model's fields, and the keys under which they are written."""
    return [(name, field.alias or name) for name, field in model.model_fields.items()]
