"""Some attributes of all files of a long profile, without reading the others.

A profile of 10,000 files takes seconds to read, and a policy asks for two or three attributes of each. What `emit`
writes has one attribute a line, at a known depth, so lines can be picked by searching bytes. The entries left are
then read as carefully as any text; what stands on other lines is not looked at, right or wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from vani.errors import DocumentError
from vani.schema.profile import FileEntity, IOStats
from vani.schema.yaml_text import parse

__all__ = ["Column", "file_columns"]

Column = tuple[str, ...]
"""Keys below an entry of `files`: `("io", "ops", "read")`."""

_BEGIN: Final = b"\nfiles:\n- path: "
_ENTRY: Final = b"\n- path: "
_END: Final = b"\nexcluded:"


def file_columns(content: bytes, columns: Iterable[Column]) -> list[dict[str, Any]] | None:
    """All entries of `files` with their paths and at least the wanted columns, in their order.

    None where the text is not as `emit` writes profiles, or a column is not in every entry or not as the schema says:
    read all of it, which tells what is wrong.
    """
    wanted = _heads(columns)
    if not all(head[-1] in (IOStats if len(head) == 2 else FileEntity).model_fields for head in wanted):
        return None
    begin = content.find(_BEGIN)
    end = content.rfind(_END, begin + 1) if begin >= 0 else -1
    if end < 0:
        return None
    begin += len(b"\nfiles:")
    kept = b"".join(match[0] for match in _lines(wanted).finditer(content, begin, end))
    entries = content.count(_ENTRY, begin, end)
    if entries != content.count(b"\n- ", begin, end) or entries != kept.count(_ENTRY):
        return None
    try:
        tree = parse("files:" + kept.decode() + "\n", "")
    except (DocumentError, UnicodeDecodeError):
        return None
    files: Any = tree["files"] if isinstance(tree, dict) else None
    if not isinstance(files, list) or len(files) != entries:
        return None
    return files if _valid(files, wanted) else None


def _heads(columns: Iterable[Column]) -> tuple[Column, ...]:
    """What is read of each column: its first key, and the second if the first is `io`, which has many."""
    return tuple(
        sorted(
            {column[:2] if column[0] == "io" else column[:1] for column in columns if column} - {("path",)}
        )
    )


def _lines(wanted: Sequence[Column]) -> re.Pattern[bytes]:
    """What finds the first line of every entry, and the wanted keys with all that is below them."""
    parts = [r"\n- path: [^\n]*"]
    if any(len(head) == 2 for head in wanted):
        parts.append(r"\n  io:(?=\n)")
    for head in wanted:
        indent = 2 * len(head)
        below = rf"(?:\n {{{indent + 1},}}[^\n]*|\n {{{indent}}}-(?= |\n)[^\n]*)*"
        parts.append(rf"\n {{{indent}}}{head[-1]}:(?= |\n)[^\n]*{below}")
    return re.compile("|".join(parts).encode())


def _valid(files: Sequence[Any], wanted: Collection[Column]) -> bool:
    """Whether every entry has a path and all wanted columns, each as the schema says."""
    io = _fields(IOStats, {head[1] for head in wanted if len(head) == 2})
    names = {head[0] for head in wanted if head[0] != "io"}
    fields = _fields(FileEntity, {"path", *names}) | (
        {"io": (create_model("SomeIO", **io), ...)} if io else {}
    )
    some_files: Any = list[create_model("SomeFile", **fields)]  # type: ignore[misc]
    try:
        TypeAdapter(some_files).validate_python(files)
    except ValidationError:
        return False
    return True


def _fields(model: type[BaseModel], names: Collection[str]) -> dict[str, Any]:
    """Types of some keys of a model with their limits, all of them required."""
    fields: dict[str, Any] = {}
    for name in sorted(names):
        field = model.model_fields[name]
        kind: Any = field.annotation
        for limit in field.metadata:
            kind = Annotated[kind, limit]
        fields[name] = (kind, ...)
    return fields
