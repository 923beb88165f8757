"""The page as it is printed by default: one sheet of paper to go with a ticket, however long the report is.

It has the verdict, three causes, a line to paste for each, and which run it is. All texts are short enough that the
sheet is never full; what does not fit whole, such as a long line to paste, is left to the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.render.report.bounds import clip
from vani.render.report.identity import Fact
from vani.render.report.items import Item

if TYPE_CHECKING:
    from vani.render.report.report_model import Verdict

__all__ = ["Cause", "Ticket", "ticket"]

CAUSES: Final = 3
_TITLE, _SENTENCE, _REASON, _LINE, _NAME = 100, 420, 420, 240, 90
"""Letters. Three causes of the longest texts, in letters that are wide, fill two thirds of a sheet."""


@dataclass(frozen=True)
class Cause:
    """One of the things to do, or that were noticed."""

    title: str
    rule: str
    severity: str
    target: str
    reason: str
    gain: str
    """Empty where none is estimated."""
    line: str
    """Lines to paste; empty where there are none, or none that are short."""


@dataclass(frozen=True)
class Ticket:
    """One sheet of paper."""

    title: str
    damage: str
    facts: tuple[Fact, ...]
    headline: str
    sentence: str
    heading: str
    causes: tuple[Cause, ...]


def ticket(
    title: str,
    damage: str,
    facts: Sequence[Fact],
    verdict: Verdict,
    todo: Sequence[Item],
    advice: Sequence[Item],
) -> Ticket:
    """Shorten the first screen; where there is nothing to do, list what was noticed."""
    shown = todo or advice[:CAUSES]
    return Ticket(
        title=clip(title, _TITLE),
        damage=clip(damage, _SENTENCE),
        facts=tuple(Fact(clip(fact.label, _NAME), clip(fact.value, _NAME)) for fact in facts),
        headline=clip(verdict.headline, _SENTENCE // 2),
        sentence=clip(verdict.sentence, _SENTENCE),
        heading="What to do" if todo else f"{verdict.without_advice}; also noticed",
        causes=tuple(_cause(item) for item in shown),
    )


def _cause(item: Item) -> Cause:
    lines = [line for line in item.lines if len(line) <= _LINE and not line.lstrip().startswith("#")]
    return Cause(
        title=clip(item.title, _TITLE),
        rule=item.rule,
        severity=item.severity,
        target=clip(item.target, _NAME),
        reason=clip(item.reason, _REASON),
        gain=clip(item.gain, _LINE) if item.has_gain else "",
        line=lines[0] if lines else "",
    )
