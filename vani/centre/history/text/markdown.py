"""A ranking of runs as Markdown, for a team's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.centre.history.text.next_runs import ABOUT, TITLE, next_table
from vani.centre.history.text.rows import headline, next_step, table

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking
    from vani.centre.prediction.schema import BehaviourPrediction

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~&])")


def render(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write tables; names from logs cannot be markup or links."""
    lines = ["# Largest losses in I/O", "", _safe(headline(ranking)), "", *_table(*table(ranking), last=True)]
    lines += ["", _safe(next_step(ranking))]
    if next_runs:
        lines += ["", f"## {TITLE}", "", _safe(ABOUT), "", *_table(*next_table(next_runs), last=False)]
    return "\n".join(lines) + "\n"


def _table(head: tuple[str, ...], left: int, rows: list[tuple[str, ...]], *, last: bool) -> list[str]:
    """A table in which the first `left` columns are text and, with `last`, the last one too."""
    marks = [
        "---" if number < left or (last and number == len(head) - 1) else "---:" for number in range(len(head))
    ]
    return [_row(head), _row(marks), *(_row([_safe(cell) for cell in row]) for row in rows)]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
