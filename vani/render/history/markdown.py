"""A ranking of runs as Markdown, for a page of the team."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vani.render.history.rows import headline, next_step, table

if TYPE_CHECKING:
    from vani.schema.history import Ranking

__all__ = ["render"]

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~&])")


def render(ranking: Ranking) -> str:
    """Write a table; names from logs can be neither markup nor links."""
    head, left, rows = table(ranking)
    marks = ["---" if number < left or number == len(head) - 1 else "---:" for number in range(len(head))]
    lines = ["# Who loses most in I/O", "", _safe(headline(ranking)), "", _row(head), _row(marks)]
    lines += [_row([_safe(cell) for cell in row]) for row in rows]
    return "\n".join([*lines, "", _safe(next_step(ranking))]) + "\n"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
