"""Columns of a profile's files: an attribute of each, by its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from vani.schema.profile import FileEntity, IOStats

__all__ = ["Column", "columns_in_order", "type_of"]

Column = tuple[str, ...]
"""Keys below an entry of `files`: `("size",)`, `("io", "ops")`, or deeper `("io", "ops", "read")`."""


def columns_in_order() -> Iterator[Column]:
    """The keys of a file and of its `io`, as documents have them."""
    for name in FileEntity.model_fields:
        yield (name,)
        if name == "io":
            yield from (("io", below) for below in IOStats.model_fields)


def type_of(column: Column) -> Any:
    """The type of a key of a file, or of its `io`, with its limits."""
    field = (FileEntity if len(column) == 1 else IOStats).model_fields[column[-1]]
    kind: Any = field.annotation
    for limit in field.metadata:
        kind = Annotated[kind, limit]
    return kind
