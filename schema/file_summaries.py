"""What a table of files needs of every file of a long profile, without reading the rest.

A profile of 50,000 files takes 6 s to parse and check. What Vani wrote has its keys in the order of the model, as YAML
at the depths that `yaml/layout.py` says, or as JSON on one line: the wanted ones are found by searching bytes, and
checked at once, each distinct text as the schema says. Text of another form is for the reader of whole documents, which
tells what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from vani.errors import DocumentError
from vani.schema.columns_of_files import type_of
from vani.schema.dataset_facts import FormatAttributes
from vani.schema.json_columns import json_columns
from vani.schema.json_reading import is_long_json
from vani.schema.profile import FileEntity
from vani.schema.yaml_columns import as_json, yaml_columns, yaml_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from vani.schema.profile import AccessPattern, ByKind, ByteCounts, OpCounts, TransferSizes

__all__ = ["FileSummary", "IOSummary", "ListedFile", "file_summaries"]


@dataclass(frozen=True, slots=True, eq=False)
class IOSummary:
    """Some of the I/O statistics of a file: see `IOStats`."""

    bytes: ByteCounts
    ops: OpCounts
    time_s: ByKind
    transfer_size: TransferSizes
    access_pattern: AccessPattern | None


@dataclass(frozen=True, slots=True, eq=False)
class FileSummary:
    """Some of what a profile says about a file: see `FileEntity`."""

    path: str
    format: str | None
    size: int | None
    role: str | None
    access: str
    processes: int
    io: IOSummary
    format_attributes: FormatAttributes | None
    stripe_count: int | None = None
    stripe_size: int | None = None


ListedFile: TypeAlias = FileEntity | FileSummary
"""A file as far as a table shows it."""

_FIRST: Final = (("path",), ("format",), ("size",), ("role",), ("access",), ("processes",))
_OF_IO: Final = (
    ("io", "bytes"), ("io", "ops"), ("io", "time_s"), ("io", "transfer_size"), ("io", "access_pattern"),
)  # fmt: skip
_LAST: Final = (("format_attributes",),)
_LAYOUT: Final = ("stripe_count", "stripe_size", "components")


def file_summaries(content: bytes) -> list[FileSummary] | None:
    """Every entry of `files`, in their order.

    None where the text is not as Vani writes profiles, or a value is not as the schema says: read all of it, which
    tells what is wrong.
    """
    # Few sources tell layouts, and those not of each file: their profiles are read whole.
    wanted, is_json = (*_FIRST, *_OF_IO, *_LAST), is_long_json(content)
    texts = (json_columns if is_json else yaml_columns)(content, wanted, without=_LAYOUT)
    if texts is None:
        return None
    read = _read_json if is_json else _read_yaml
    try:
        columns = {column: _values(texts[column], type_of(column), read) for column in wanted}
    except (DocumentError, ValidationError, ValueError):
        return None
    io = map(IOSummary, *(columns[column] for column in _OF_IO))
    first, last = ([columns[column] for column in some] for some in (_FIRST, _LAST))
    return list(map(FileSummary, *first, io, *last))


def _values(texts: list[bytes], kind: Any, read: Callable[[list[bytes], Any], list[Any]]) -> list[Any]:
    """The values of a column; raises what `read` does."""
    # Most values are those of other files, too: each is read once.
    distinct = list(dict.fromkeys(texts))
    return list(map(dict(zip(distinct, read(distinct, kind), strict=True)).__getitem__, texts))


def _read_yaml(texts: list[bytes], kind: Any) -> list[Any]:
    """Values of a type from the texts behind their key.

    Raises
    ------
    DocumentError, ValidationError, ValueError
        A text is of another form, or not as the schema says.
    """
    check: TypeAdapter[list[Any]] = TypeAdapter(list[kind])
    flat = as_json(texts)
    return check.validate_python(yaml_values(texts)) if flat is None else check.validate_json(flat)


def _read_json(texts: list[bytes], kind: Any) -> list[Any]:
    """See `_read_yaml`."""
    joined = b",".join(texts)
    if b"NaN" in joined or b"Infinity" in joined:
        raise ValueError
    check: TypeAdapter[list[Any]] = TypeAdapter(list[kind])
    return check.validate_json(b"[" + joined + b"]")
