"""Parts of a long profile, without reading the rest: the most important files, or some attributes of all files.

A profile of 50,000 files has 50 to 100 MB of YAML, which take seconds to parse and check. What Vani writes is
regular enough to find the entries of `files` and their attributes by searching bytes. What is found is then read as
carefully as any text; what stands elsewhere in `files` is not looked at, right or wrong. Text of another form is for
the reader of whole documents, which tells what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from vani.errors import DocumentError
from vani.garbage import collection_paused
from vani.schema.columns_of_files import Column, columns_in_order, type_of
from vani.schema.json_columns import ENTRY as JSON_ENTRY
from vani.schema.json_columns import files_span as json_files_span
from vani.schema.json_columns import json_columns
from vani.schema.json_reading import is_long_json, parse_json
from vani.schema.yaml.layout import STEP
from vani.schema.yaml_columns import ENTRY, files_span, yaml_columns, yaml_values

__all__ = ["Excerpt", "excerpt", "file_columns", "most_important"]

_JSON_NEXT: Final = b"}," + JSON_ENTRY
_JSON_TIME: Final = re.compile(rb'"time_s":\{[^{}]*"total":([0-9.e+-]{1,40})\}')
_TIME: Final = re.compile(rf"\n {{{2 * STEP}}}time_s: \{{[^}}\n]*total: ([0-9.e+-]{{1,40}})\}}\n".encode())
"""`io.time_s.total` of an entry."""


@dataclass(frozen=True)
class Excerpt:
    """A profile's text with some of its files; `kept` are their positions in the whole list, ascending."""

    text: bytes
    kept: tuple[int, ...]
    listed: int
    io_time_share: float


def most_important(times: Sequence[float], count: int) -> tuple[tuple[int, ...], float]:
    """Positions (ascending) of the `count` largest times, of equal ones the first, and their share of all."""
    order = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    kept = tuple(sorted(order[:count]))
    whole = sum(times)
    return kept, sum(times[i] for i in kept) / whole if whole else 1.0


def excerpt(content: bytes, count: int) -> Excerpt | None:
    """Keep the `count` files with the most I/O time.

    None where the text is not as `yaml_text` writes profiles, or lists no more files than that: read all of it.
    """
    if is_long_json(content):
        return _json_excerpt(content, count)
    span = files_span(content)
    if span is None:
        return None
    begin, end = span
    found = _TIME.findall(content, begin, end)
    listed = len(found)
    # Exactly one time per entry: a list with an entry of another shape is not for us.
    if listed <= count or content.count(ENTRY, begin, end) != listed:
        return None
    try:
        times = list(map(float, found))
    except ValueError:
        return None
    kept, share = most_important(times, count)
    if kept[-1] == count - 1:  # as Vani writes them: most I/O time first
        stop = begin
        for _ in range(count):
            stop = content.index(ENTRY, stop + 1)
        files = content[begin:stop]
    else:
        entries = content[begin:end].split(ENTRY)
        files = b"".join(ENTRY + entries[i + 1] for i in kept)
    return Excerpt(content[:begin] + files + content[end:], kept, listed, share)


def file_columns(content: bytes, columns: Iterable[Column]) -> list[dict[str, Any]] | None:
    """All entries of `files` with their paths and at least the wanted columns, in their order.

    None where the text is not as `yaml_text` writes profiles, or a column is not in every entry or not as the schema
    says: read all of it, which tells what is wrong.
    """
    wanted = [("path",), *_heads(columns)]
    if not set(wanted) <= set(columns_in_order()):
        return None
    is_json = is_long_json(content)
    with collection_paused():
        texts = (json_columns if is_json else yaml_columns)(content, wanted)
        if texts is None:
            return None
        try:
            values = {column: _values(column, texts[column], is_json=is_json) for column in texts}
        except (DocumentError, UnicodeDecodeError, ValidationError):
            return None
        return _entries(values)


def _values(column: Column, texts: Sequence[bytes], *, is_json: bool) -> list[Any]:
    """Plain values of a column; files with the same text have the same object.

    Raises
    ------
    DocumentError, UnicodeDecodeError, ValidationError
        A value is none, or not as the schema says.
    """
    distinct = list(dict.fromkeys(texts))
    values = parse_json(f"[{b','.join(distinct).decode()}]", "") if is_json else yaml_values(distinct)
    kind: Any = type_of(column)
    check: TypeAdapter[list[Any]] = TypeAdapter(list[kind])
    check.validate_python(values)
    return list(map(dict(zip(distinct, values, strict=True)).__getitem__, texts))


def _entries(values: Mapping[Column, Sequence[Any]]) -> list[dict[str, Any]]:
    """A tree for each file."""
    of_io = [column for column in values if column[0] == "io"]
    names = [column[0] for column in values if column[0] != "io"]
    columns = [values[name,] for name in names]
    if of_io:
        below = [column[1] for column in of_io]
        io = zip(*(values[column] for column in of_io), strict=True)
        names.append("io")
        columns.append([dict(zip(below, row, strict=True)) for row in io])
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _json_excerpt(content: bytes, count: int) -> Excerpt | None:
    """See `excerpt`; of JSON on one line, in which no string holds a quote that is not escaped."""
    span = json_files_span(content)
    if span is None:
        return None
    begin, end = span[0] + len(JSON_ENTRY), span[1] - 1
    found = _JSON_TIME.findall(content, begin, end)
    listed = len(found)
    if listed <= count or content.count(_JSON_NEXT, begin, end) != listed - 1:
        return None
    try:
        kept, share = most_important(list(map(float, found)), count)
    except ValueError:
        return None
    entries = content[begin:end].split(_JSON_NEXT)
    files = _JSON_NEXT.join(entries[i] for i in kept)
    return Excerpt(content[:begin] + files + content[end:], kept, listed, share)


def _heads(columns: Iterable[Column]) -> tuple[Column, ...]:
    """What is read of each column: its first key, and the second if the first is `io`, which has many."""
    return tuple(
        sorted(
            {column[:2] if column[0] == "io" else column[:1] for column in columns if column} - {("path",)}
        )
    )
