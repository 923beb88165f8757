"""The possible saving: the advice on a run in seconds and one setting, and its meaning for all runs like it.

The advice of a few runs stands for all of a pair of application and user: the share of the waiting that it is expected
to win is taken of the waiting of all of them, from the least that one of the runs promises to the most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.database.runs.run import Run, Verdict
from vani.errors import one_line
from vani.units import KiB, format_bytes, format_seconds, lfs_size

if TYPE_CHECKING:
    from vani.database.runs.read import Group
    from vani.schema.advice import Advice, Recommendation

__all__ = ["Share", "pairs_that_matter", "shares", "verdict_from"]

_MATTER = "MAT001"
_STRIPES = re.compile(r"lfs setstripe (?P<options>(?:-[A-Za-z] \S+ )+)")
_LINES = 20


@dataclass(frozen=True)
class Share:
    """Of the waiting of a pair's runs, what could be saved, 0..1; and the run of which most is known."""

    low: float
    expected: float
    high: float
    best: Verdict


def pairs_that_matter(groups: Sequence[Group], most: int) -> list[tuple[str, str]]:
    """Application and user of the pairs that cost most, by either cost."""
    costly: dict[tuple[str, str], None] = {}
    by_wait = sorted(groups, key=lambda group: (-group.waiting_s, group.pair))
    by_io = sorted(groups, key=lambda group: (-group.in_io_s, group.pair))
    for pair in zip(by_wait, by_io, strict=True):
        for group in pair:
            if len(costly) < most and max(group.waiting_s, group.in_io_s) > 0:
                costly[group.pair] = None
    return list(costly)


def verdict_from(advice: Advice, run: Run, findings: dict[str, str]) -> Verdict:
    """The seconds of its slowest process that a run saves by following its advice.

    Parameters
    ----------
    findings
        What is wrong, by rule, in a sentence.
    """
    advised = [entry for entry in advice.recommendations if entry.rule != _MATTER]
    # What is hardly worth it counts where there is nothing else.
    worth = [entry for entry in advised if entry.severity != "info"] or advised
    chosen = [recommendation for recommendation in worth if _wins(recommendation) > 0]
    most = run.slowest_s if run.slowest_s is not None else float("inf")

    def total(seconds: Iterable[float]) -> float:
        return min(most, sum(seconds))

    # Advice without a number is advice all the same: the first is told, and that its gain is not known.
    first = next((entry for entry in worth if entry.severity != "info"), None)
    best = max(chosen, key=_wins, default=first)
    if best is None and advice.verdict is not None and advice.verdict.matters == "open":
        return _open(advice, run)
    return Verdict(
        digest=run.digest,
        system=advice.system.name or "",
        saved_low_s=total(_before(entry) * (1 - 1 / _speedup(entry, "low")) for entry in chosen),
        saved_s=total(map(_wins, chosen)),
        saved_high_s=total(_before(entry) * (1 - 1 / _speedup(entry, "high")) for entry in chosen),
        rule="" if best is None else best.rule,
        setting="" if best is None else one_line(_setting(best)),
        why="" if best is None else one_line(findings.get(best.rule, best.name)),
        lines=() if best is None else tuple(one_line(line) for line in best.apply[:_LINES]),
    )


def _open(advice: Advice, run: Run) -> Verdict:
    """A run of which too little was seen to say that nothing can be saved: what to do is to look again."""
    assert advice.verdict is not None
    remedy = advice.verdict.remedy
    return Verdict(
        digest=run.digest,
        system=advice.system.name or "",
        saved_low_s=0.0,
        saved_s=0.0,
        saved_high_s=0.0,
        rule=_MATTER,
        setting="not known: trace it again",
        why=one_line(advice.verdict.sentence),
        lines=() if remedy is None else (one_line(f"# {remedy}"),),
    )


def shares(verdicts: Iterable[tuple[Verdict, Run]]) -> dict[tuple[str, str], Share]:
    """By application and user."""
    by_pair: dict[tuple[str, str], list[tuple[Verdict, Run]]] = {}
    for judged, run in verdicts:
        if run.slowest_s:
            by_pair.setdefault((run.application, run.user), []).append((judged, run))
    by_pair_share = {}
    for pair, some in by_pair.items():
        slowest = [run.slowest_s or 0.0 for _, run in some]
        waiting = sum(seconds * run.processes for seconds, (_, run) in zip(slowest, some, strict=True))
        saved = sum(judged.saved_s * run.processes for judged, run in some)
        by_pair_share[pair] = Share(
            low=min(1.0, *(judged.saved_low_s / s for s, (judged, _) in zip(slowest, some, strict=True))),
            expected=min(1.0, saved / waiting),
            high=min(1.0, max(judged.saved_high_s / s for s, (judged, _) in zip(slowest, some, strict=True))),
            best=max(
                some,
                key=lambda judgement: (
                    judgement[0].saved_s * judgement[1].processes,
                    judgement[0].rule != "",
                    judgement[0].digest,
                ),
            )[0],
        )
    return by_pair_share


def _before(recommendation: Recommendation) -> float:
    return max(0.0, recommendation.expected.before or 0.0) if recommendation.expected is not None else 0.0


def _wins(recommendation: Recommendation) -> float:
    if (
        recommendation.rule == _MATTER
        or recommendation.expected is None
        or recommendation.expected.after is None
    ):
        return 0.0
    return max(0.0, _before(recommendation) - recommendation.expected.after)


def _speedup(recommendation: Recommendation, end: str) -> float:
    """One end of the range; where it is not known, what is expected."""
    assert recommendation.expected is not None
    bound = getattr(recommendation.expected, end)
    return max(1.0, bound if bound is not None else recommendation.expected.speedup or 1.0)


def _setting(recommendation: Recommendation) -> str:
    for line in recommendation.apply:
        stripes = _STRIPES.match(line)
        if stripes is not None:
            return f"lfs setstripe {stripes['options']}DIR"
    settings = ", ".join(_part(name, value) for name, value in recommendation.recommended.items())
    return (
        f"{recommendation.name.replace('-', ' ')}: {settings}"
        if settings
        else recommendation.name.replace("-", " ")
    )


def _part(name: str, value: object) -> str:
    """A setting and its value, with units as people write them."""
    words = name.split("_")
    if words[-1] == "s" and isinstance(value, (int, float)):
        return f"{' '.join(words[:-1])} {format_seconds(value)}"
    if words[-1] in ("bytes", "size") and isinstance(value, int):
        return f"{' '.join(words)} {lfs_size(value) if value % KiB == 0 else format_bytes(value)}"
    return f"{' '.join(words)} {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={part}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(map(_value, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
