"""Runs in columns, as wide as their figures; the other formats have all columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.run_table import RunRow, RunTable

__all__ = ["render"]

_HEAD = (
    "run",
    "processes",
    "run time",
    "I/O",
    "read",
    "written",
    "write rate",
    "metadata",
    "files",
    "costliest",
)


def render(document: RunTable, **_: object) -> bytes:
    """Write a line for each run; names from traces cannot leave theirs."""
    lines = table(_HEAD, [_row(one) for one in document.rows], all_rows=True)
    damaged = [one for one in document.rows if one.damage is not None]
    if damaged:
        lines += ["", "* damaged: figures are too small"]
    return ("\n".join(lines) + "\n").encode()


def _row(one: RunRow) -> tuple[str, ...]:
    def shown(value: object, text: str) -> str:
        return "-" if value is None else text

    return (
        one_line(one.run) + (" *" if one.damage is not None else ""),
        format_count(one.processes),
        shown(one.runtime_s, format_seconds(one.runtime_s)),
        shown(one.io_share, format_share(one.io_share)),
        shown(one.read, format_bytes(one.read)),
        shown(one.written, format_bytes(one.written)),
        shown(one.write_rate, format_rate(one.write_rate)),
        shown(one.metadata, format_count(one.metadata)),
        shown(one.files, format_count(one.files)),
        one_line(one.costliest or "-"),
    )
