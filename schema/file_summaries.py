"""What a table of files needs of every file of a long profile, without reading the rest.

A profile of 50,000 files takes 6 s to parse and check; a column of its files is found by searching bytes, at the
depths that `yaml/layout.py` says, and checked at once, each distinct text as the schema says. Text of another form is
for the reader of whole documents, which tells what is wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from vani.errors import DocumentError
from vani.schema.dataset_facts import FormatAttributes
from vani.schema.long_profile import ENTRY, files_span, type_of
from vani.schema.profile import FileEntity, IOStats
from vani.schema.yaml.layout import BARE, STEP, WORDS
from vani.schema.yaml.read import parse

if TYPE_CHECKING:
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

_OF_FILE: Final = ("format", "size", "role", "access", "processes", "format_attributes")
_OF_IO: Final = ("bytes", "ops", "time_s", "transfer_size", "access_pattern")
_LAYOUT: Final = re.compile(rf"\n {{{STEP}}}(?:stripe_count|stripe_size|components):".encode())
_PATH: Final = re.compile(re.escape(ENTRY) + rb"([^\n]*)")


def file_summaries(content: bytes) -> list[FileSummary] | None:
    """Every entry of `files`, in their order.

    None where the text is not as `yaml_text` writes profiles, or a value is not as the schema says: read all of it,
    which tells what is wrong.
    """
    span = files_span(content)
    # Few sources tell layouts, and those not of each file: their profiles are read whole.
    if span is None or _LAYOUT.search(content, *span):
        return None
    try:
        paths = _texts(_PATH.findall(content, *span))
        files = [_column(content, span, name, STEP, FileEntity) for name in _OF_FILE]
        stats = [_column(content, span, name, 2 * STEP, IOStats) for name in _OF_IO]
    except (DocumentError, ValidationError, ValueError):
        return None
    if {len(column) for column in (*files, *stats)} != {len(paths)}:
        return None
    io: map[IOSummary] = map(IOSummary, *stats)
    *of_file, arrays = files
    return list(map(FileSummary, paths, *of_file, io, arrays))


def _texts(found: list[bytes]) -> list[str]:
    """Scalars of text: bare, or quoted as JSON does."""
    texts = [text.decode() for text in found]
    if any(
        "\\U" in text or not (text[:1] == '"' or (BARE.fullmatch(text) and text not in WORDS))
        for text in texts
    ):
        raise ValueError
    return [json.loads(text) if text[0] == '"' else text for text in texts]


def _column(content: bytes, span: tuple[int, int], name: str, indent: int, model: Any) -> list[Any]:
    """The values of a key at a depth, in the order of the text.

    Raises
    ------
    DocumentError, ValidationError, ValueError
        A value is of another form, or not as the schema says.
    """
    pattern = rf"\n {{{indent}}}{name}:((?: [^\n]*)?(?:\n {{{indent + 1},}}[^\n]*)*)"
    found = re.compile(pattern.encode()).findall(content, *span)
    # Most values are those of other files, too: each is read once.
    distinct = list(dict.fromkeys(found))
    values = _read(distinct, type_of(model, name))
    return list(map(dict(zip(distinct, values, strict=True)).__getitem__, found))


_FLAT: Final = re.compile(rb" \{[a-z_]+: [-0-9a-z.+]+(?:, [a-z_]+: [-0-9a-z.+]+)*\}")
_MOST_DISTINCT: Final = 90_000
"""Beyond that reading a column costs what reading all does."""


def _read(texts: list[bytes], kind: Any) -> list[Any]:
    """Values of a type from the texts behind their key."""
    check: TypeAdapter[list[Any]] = TypeAdapter(list[kind])
    if all(map(_FLAT.fullmatch, texts)):
        # Names and numbers between braces are JSON but for the quotes: no loop over files.
        joined = b",".join(text[1:] for text in texts)
        quoted = joined.replace(b"{", b'{"').replace(b": ", b'": ').replace(b", ", b', "')
        return check.validate_json(b"[" + quoted + b"]")
    if len(texts) > _MOST_DISTINCT:
        raise ValueError
    tree: Any = parse("".join(f"k{i}:{text.decode()}\n" for i, text in enumerate(texts)), "")
    return check.validate_python(list(tree.values()))
