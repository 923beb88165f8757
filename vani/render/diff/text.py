"""Differences as plain text in three lines each, so that paths of any length fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.diff.rows import Row, figures, headline, rows, weight

if TYPE_CHECKING:
    from vani.schema.diff import Diff

def render(diff: Diff, *, everything: bool = False) -> str:
    """Write the most important differences, or all of them; `*` marks those that matter."""
    shown, hidden = rows(diff, everything=everything)
    lines = [f"A  {one_line(diff.a.path)}", f"B  {one_line(diff.b.path)}", "", *_table(diff), ""]
    if (sentence := weight(diff)) is not None:
        lines.append(sentence)
    lines.append(headline(diff))
    wide = max((len(row.status) for row in shown), default=0)
    for row in shown:
        lines += ["", *_lines(row, wide)]
    if hidden:
        lines += ["", hidden]
    return "\n".join(lines) + "\n"


def _table(diff: Diff) -> list[str]:
    table = [("", "A", "B", ""), *figures(diff)]
    wide = [max(len(row[column]) for row in table) for column in range(3)]
    return [
        f"{name.ljust(wide[0])}  {before.rjust(wide[1])}  {after.rjust(wide[2])}  {change}".rstrip()
        for name, before, after, change in table
    ]


def _lines(row: Row, wide: int) -> list[str]:
    change = f"  {row.change}" if row.change else ""
    time = f"  I/O time {row.io_time}" if row.io_time else ""
    mark = "*" if row.matters else " "
    values = f"{row.before} -> {row.after}{change}{time}"
    return [f"{mark} {row.status.ljust(wide)}  {row.attribute}", f"  {' ' * wide}  {values}"]
