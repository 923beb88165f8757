"""Differences as Markdown, for a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.diff.rows import figures, headline, rows, weight

if TYPE_CHECKING:
    from vani.schema.diff import Diff

def render(diff: Diff, *, everything: bool = False) -> str:
    """Write a table; text from traces is in code spans, so that it cannot be markup or a link."""
    shown, hidden = rows(diff, everything=everything)
    lines = [
        "# I/O of two runs",
        "",
        f"A: {_code(diff.a.path)}  ",
        f"B: {_code(diff.b.path)}",
        "",
        "| | A | B | change |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {' | '.join(cells)} |" for cells in figures(diff)),
        "",
        *([sentence, ""] if (sentence := weight(diff)) is not None else []),
        headline(diff),
    ]
    if shown:
        lines += [
            "",
            "| | attribute | A | B | change | I/O time |",
            "| --- | --- | ---: | ---: | ---: | ---: |",
        ]
    for row in shown:
        status = f"**{row.status}**" if row.matters else row.status
        cells = [status, _code(row.attribute), _code(row.before), _code(row.after), row.change, row.io_time]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if hidden:
        lines += ["", hidden]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Text as a code span, with a fence longer than any run of backticks in the text."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
