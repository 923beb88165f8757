"""Runs in columns as wide as their figures; the other formats have more columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.run_table import RunRow, RunTable

_HEAD = (
    "run",
    "processes",
    "run time",
    "matters",
    "I/O",
    "read",
    "written",
    "write rate",
    "metadata",
    "files",
    "costliest",
)


def render(document: RunTable, **_: object) -> bytes:
    """Write a line per run; names from traces cannot add lines."""
    lines = table(_HEAD, [_row(row) for row in document.rows], all_rows=True)
    damaged = [row for row in document.rows if row.damage is not None]
    if damaged:
        lines += ["", "* damaged: figures are too small"]
    return ("\n".join(lines) + "\n").encode()


def _row(row: RunRow) -> tuple[str, ...]:
    def shown(value: object, text: str) -> str:
        return "-" if value is None else text

    return (
        one_line(row.run) + (" *" if row.damage is not None else ""),
        format_count(row.processes),
        shown(row.runtime_s, format_seconds(row.runtime_s)),
        (row.matters or "-").replace("_", " "),
        shown(row.io_share, ("> " if row.io_share_is_lower_bound else "") + format_share(row.io_share)),
        shown(row.read, format_bytes(row.read)),
        shown(row.written, format_bytes(row.written)),
        shown(row.write_rate, format_rate(row.write_rate)),
        shown(row.metadata, format_count(row.metadata)),
        shown(row.files, format_count(row.files)),
        one_line(row.costliest or "-"),
    )
