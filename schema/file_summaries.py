"""What a table of files needs of every file of a long profile, without reading the rest.

A profile of 50,000 files takes 6 s to parse and check. What Vani wrote has its keys in the order of the model, as YAML
at the depths that `yaml/layout.py` says, or as JSON on one line: the wanted ones are found by searching bytes, and
checked at once, each distinct text as the schema says. Text of another form is for the reader of whole documents, which
tells what is wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from vani.errors import DocumentError
from vani.schema.dataset_facts import FormatAttributes
from vani.schema.json_columns import files_span as json_files_span
from vani.schema.json_columns import json_columns
from vani.schema.json_reading import is_long_json
from vani.schema.long_profile import ENTRY, files_span, type_of
from vani.schema.profile import FileEntity, IOStats
from vani.schema.yaml.layout import BARE, STEP, WORDS
from vani.schema.yaml.read import parse

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

_FIRST: Final = ("format", "size", "role", "access", "processes")
_OF_IO: Final = ("bytes", "ops", "time_s", "transfer_size", "access_pattern")
_LAST: Final = ("format_attributes",)
_LAYOUT: Final = ("stripe_count", "stripe_size", "components")
_NAMES: Final = (*_FIRST, *_OF_IO, *_LAST)
"""What is read of each file, in the order of the model, and thereby of the text."""


def file_summaries(content: bytes) -> list[FileSummary] | None:
    """Every entry of `files`, in their order.

    None where the text is not as Vani writes profiles, or a value is not as the schema says: read all of it, which
    tells what is wrong.
    """
    try:
        columns = _json_columns(content) if is_long_json(content) else _yaml_columns(content)
    except (DocumentError, ValidationError, ValueError):
        return None
    if columns is None:
        return None
    first, last = 1 + len(_FIRST), len(_LAST)
    io: map[IOSummary] = map(IOSummary, *columns[first:-last])
    return list(map(FileSummary, *columns[:first], io, *columns[-last:]))


# --- as YAML --------------------------------------------------------------------------------------

_PATH: Final = re.compile(re.escape(ENTRY) + rb"([^\n]*)")


def _wanted_lines() -> re.Pattern[bytes]:
    """What finds the wanted keys of entries and of their `io`, each with all that is below it."""
    of_entry = "|".join((*_FIRST, *_LAST, *_LAYOUT))
    below = [rf"(?: [^\n]*)?(?:\n {{{depth + 1},}}[^\n]*)*" for depth in (STEP, 2 * STEP)]
    # One pass: what all lines within entries begin with is found fast.
    return re.compile(
        rf"\n {{{STEP}}}(?:((?:{of_entry}):{below[0]})| {{{STEP}}}((?:{'|'.join(_OF_IO)}):{below[1]}))".encode()
    )


_WANTED: Final = _wanted_lines()


def _yaml_columns(content: bytes) -> list[list[Any]] | None:
    """Paths, and the values of `_NAMES`, of all files; see `file_summaries`.

    Raises
    ------
    DocumentError, ValidationError, ValueError
        A value is of another form, or not as the schema says.
    """
    span = files_span(content)
    if span is None:
        return None
    paths = _PATH.findall(content, *span)
    found = [of_entry or of_io for of_entry, of_io in _WANTED.findall(content, *span)]
    # Few sources tell layouts, and those not of each file: their profiles are read whole.
    if len(found) != len(_NAMES) * len(paths):
        return None
    columns = [found[place :: len(_NAMES)] for place in range(len(_NAMES))]
    return [
        _texts(paths),
        *(
            _values(name, texts, f"{name}:".encode(), _read)
            for name, texts in zip(_NAMES, columns, strict=True)
        ),
    ]


def _texts(found: list[bytes]) -> list[str]:
    """Scalars of text: bare, or quoted as JSON does."""
    texts = [text.decode() for text in found]
    if any(
        "\\U" in text or not (text[:1] == '"' or (BARE.fullmatch(text) and text not in WORDS))
        for text in texts
    ):
        raise ValueError
    return [json.loads(text) if text[0] == '"' else text for text in texts]


def _values(
    name: str, texts: list[bytes], begin: bytes, read: Callable[[list[bytes], Any], list[Any]]
) -> list[Any]:
    """The values of a column whose texts all begin with `begin`.

    Raises
    ------
    DocumentError, ValidationError, ValueError
        A text is of another form, or not as the schema says.
    """
    # Most values are those of other files, too: each is read once.
    distinct = list(dict.fromkeys(texts))
    if not all(text.startswith(begin) for text in distinct):
        raise ValueError
    kind = type_of(IOStats if name in _OF_IO else FileEntity, name)
    values = read([text[len(begin) :] for text in distinct], kind)
    return list(map(dict(zip(distinct, values, strict=True)).__getitem__, texts))


_FLAT: Final = re.compile(rb" \{[a-z_]+: [-0-9a-z.+]+(?:, [a-z_]+: [-0-9a-z.+]+)*\}")
_MOST_DISTINCT: Final = 90_000
"""Beyond that reading a column costs what reading all does."""


def _read(texts: list[bytes], kind: Any) -> list[Any]:
    """Values of a type from the texts behind their key."""
    if all(map(_FLAT.fullmatch, texts)):
        # Names and numbers between braces are JSON but for the quotes: no loop over files.
        joined = b",".join(text[1:] for text in texts)
        quoted = joined.replace(b"{", b'{"').replace(b": ", b'": ').replace(b", ", b', "')
        return _read_json([quoted], kind)
    if len(texts) > _MOST_DISTINCT:
        raise ValueError
    tree: Any = parse("".join(f"k{i}:{text.decode()}\n" for i, text in enumerate(texts)), "")
    return TypeAdapter(list[kind]).validate_python(list(tree.values()))


# --- as JSON --------------------------------------------------------------------------------------


def _json_columns(content: bytes) -> list[list[Any]] | None:
    """See `_yaml_columns`."""
    span = json_files_span(content)
    if span is None or any(content.find(f'"{name}":'.encode(), *span) >= 0 for name in _LAYOUT):
        return None
    keys = {name: ("io", name) if name in _OF_IO else (name,) for name in _NAMES}
    texts = json_columns(content, [("path",), *keys.values()])
    if texts is None:
        return None
    return [
        _read_json(texts["path",], str),
        *(_values(name, texts[key], b"", _read_json) for name, key in keys.items()),
    ]


def _read_json(texts: list[bytes], kind: Any) -> list[Any]:
    """Values of a type from JSON."""
    joined = b",".join(texts)
    if b"NaN" in joined or b"Infinity" in joined:
        raise ValueError
    check: TypeAdapter[list[Any]] = TypeAdapter(list[kind])
    return check.validate_json(b"[" + joined + b"]")
