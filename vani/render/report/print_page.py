"""The page as it prints by default: a single sheet to attach to a ticket, whatever the length of the report.

It contains the verdict with its reasons and picture, three causes with their lines to paste, and the run's
identity. No sentence or command is truncated: the sheet refers to the page for anything that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from vani.render.report.bounds import clip
from vani.render.report.identity import Fact
from vani.render.report.items import Item

if TYPE_CHECKING:
    from vani.render.report.report_model import Verdict

CAUSES: Final = 3
_TITLE, _SENTENCE, _REASON, _NAME = 100, 420, 600, 240
"""Maximum lengths of texts in characters."""
_LETTERS: Final = 100
"""Characters per printed line."""
_LINES: Final = 40
"""Lines of a sheet without its headings and the picture."""


@dataclass(frozen=True)
class Cause:
    """An action to take, or an observation."""

    title: str
    rule: str
    severity: str
    target: str
    reason: str
    gain: str
    """Empty if there is no estimate."""
    lines: tuple[str, ...]
    """Lines to paste, all or none."""
    left_lines: int
    """Number of lines that do not fit onto the sheet."""


@dataclass(frozen=True)
class Ticket:
    """A single printed sheet."""

    title: str
    damage: str
    facts: tuple[Fact, ...]
    headline: str
    answers: tuple[Fact, ...]
    heading: str
    causes: tuple[Cause, ...]


def ticket(
    title: str,
    damage: str,
    facts: Sequence[Fact],
    verdict: Verdict,
    answers: Sequence[Fact],
    todo: Sequence[Item],
    advice: Sequence[Item],
) -> Ticket:
    """The first screen for a single sheet; if there is nothing to do, it lists the observations."""
    shown = (todo or advice)[:CAUSES]
    causes = [_cause(item) for item in shown]
    room = _LINES - sum(_height(fact.value) for fact in facts) // 2 - sum(_height(fact.value) for fact in answers)
    room -= sum(_height(cause.title + cause.target + cause.reason + cause.gain) for cause in causes)
    for place, cause in enumerate(causes):
        taken = sum(map(_height, cause.lines)) + 1
        if taken > room:
            causes[place] = replace(cause, lines=(), left_lines=len(cause.lines) + cause.left_lines)
            taken = 1
        room -= taken
    return Ticket(
        title=clip(title, _TITLE),
        damage=whole_sentences(damage, _SENTENCE),
        facts=tuple(Fact(clip(fact.label, _NAME), clip(fact.value, _NAME)) for fact in facts),
        headline=whole_sentences(verdict.headline, _SENTENCE),
        answers=tuple(Fact(fact.label, whole_sentences(fact.value, _SENTENCE)) for fact in answers),
        heading="What to do" if todo else f"{verdict.without_advice}; also noticed",
        causes=tuple(causes),
    )


def _height(text: str) -> int:
    """Number of printed lines."""
    return -(-max(1, len(text)) // _LETTERS)


def _cause(item: Item) -> Cause:
    return Cause(
        title=whole_sentences(item.title, _TITLE),
        rule=item.rule,
        severity=item.severity,
        target=clip(item.target, _NAME),
        reason=whole_sentences(item.reason, _REASON),
        gain=whole_sentences(item.gain, _SENTENCE) if item.has_gain else "",
        lines=item.lines,
        left_lines=item.left_lines,
    )


def whole_sentences(text: str, most: int) -> str:
    """As many whole sentences as fit into `most` characters; of a longer sentence, as many whole words."""
    if len(text) <= most:
        return text
    sentences = [match.end() for match in re.finditer(r"[.!?](?= [A-Z])", text[: most + 1])]
    if sentences:
        return text[: sentences[-1]]
    words = text.rfind(" ", 0, most - 1)
    return f"{text[:words]} …" if words > most // 2 else clip(text, most)
