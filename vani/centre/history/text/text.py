"""A ranking of runs as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.next_runs import ABOUT, TITLE, next_table
from vani.centre.history.text.rows import headline, next_step, table

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking
    from vani.centre.prediction.schema import BehaviourPrediction

_WIDTH: Final = 110


def render(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write the table; the last column is prose and is not padded."""
    head, left, rows = table(ranking)
    lines = [headline(ranking)]
    if rows:
        lines += columns(head, rows, left=left, last=ranking.settings is None)
    elif ranking.settings is not None:
        lines.append("no judged run could save time by a setting")
    lines.append(next_step(ranking))
    if next_runs:
        head, left, rows = next_table(next_runs)
        lines += ["", f"{TITLE}.", *wrap(ABOUT, _WIDTH), *columns(head, rows, left=left)]
    return "\n".join(lines) + "\n"


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, last: bool = False
) -> list[str]:
    """Lay out cells in columns; the first `left` columns are left-aligned and, with `last`, the last one too."""
    cells = [head, *rows]
    wide = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        shown = [
            cell.ljust(width) if 0 < number < left or (last and number == len(row) - 1) else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, wide, strict=True))
        ]
        lines.append("  ".join(shown).rstrip())
    return lines
