"""The possible saving: the advice on a run as seconds and one setting, extended to all similar runs.

The advice on a few runs represents all runs of an application by a user. Their expected savings are converted to
shares, and applied to the waiting of all runs, from the smallest that one of the runs promises to the largest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vani.centre.history.rows import StoredRun, Verdict
from vani.errors import one_line
from vani.units import KiB, format_bytes, format_number, format_seconds, lfs_size

if TYPE_CHECKING:
    from vani.centre.history.runs.read import Group
    from vani.centre.history.schema import State
    from vani.schema.advice import Advice, Expected, Recommendation

_MATTER = "MAT001"
_STRIPES = re.compile(r"lfs setstripe (?P<options>(?:-[A-Za-z] \S+ )+)")
_LINES = 20

Floats = NDArray[np.float64]


def state_of(rule: str, high_s: float) -> State:
    """Whether the advice saves a known or an unknown amount, or there is none.

    Parameters
    ----------
    rule
        Rule of the recommendation that saves most; empty if there is none.
    high_s
        Maximum saving of all recommendations in seconds; 0 if none has a number.
    """
    if not rule:
        return "nothing_found"
    return "saves" if high_s > 0 else "gain_unknown"


@dataclass(frozen=True)
class Share:
    """Share, 0..1, of a pair's waiting that could be saved; number of judged runs; best recommendation."""

    low: float
    expected: float
    high: float
    best: Verdict
    runs: int
    typical: bool


def pairs_that_matter(groups: Sequence[Group], most: int) -> list[tuple[str, str]]:
    """Application and user of the pairs that cost most, by either kind of cost."""
    costly: dict[tuple[str, str], None] = {}
    by_wait = sorted(groups, key=lambda group: (-group.waiting_s, group.pair))
    by_io = sorted(groups, key=lambda group: (-group.in_io_s, group.pair))
    for pair in zip(by_wait, by_io, strict=True):
        for group in pair:
            if len(costly) < most and max(group.waiting_s, group.in_io_s) > 0:
                costly[group.pair] = None
    return list(costly)


def verdict_from(advice: Advice, run: StoredRun, findings: dict[str, str], *, typical: bool) -> Verdict:
    """Convert a run's advice into the seconds that its slowest process would save.

    Parameters
    ----------
    findings
        The finding of each rule, in a sentence.
    typical
        Whether the advice is based on figures of a typical machine.
    """
    advised = [entry for entry in advice.recommendations if entry.rule != _MATTER]
    # Small savings count only if there is nothing else.
    worth = [entry for entry in advised if entry.severity != "info"] or advised
    saved = [_saved(entry.gain) for entry in worth]
    # A recommendation without a number is still a recommendation.
    number = max(range(len(worth)), key=lambda i: (saved[i][1], saved[i][2]), default=None)
    if number is None and advice.verdict is not None and advice.verdict.matters == "open":
        return _open(advice, run)
    best = None if number is None else worth[number]
    low, expected, high = _together(saved, run.slowest_s or 0.0).tolist()
    return Verdict(
        digest=run.digest,
        system=advice.system.name or "",
        saved_low_s=low,
        saved_s=expected,
        saved_high_s=high,
        rule="" if best is None else best.rule,
        setting="" if best is None else one_line(_setting(best)),
        why="" if best is None else one_line(findings.get(best.rule, best.name)),
        lines=() if best is None else tuple(one_line(line) for line in best.apply[:_LINES]),
        typical=typical,
    )


def _open(advice: Advice, run: StoredRun) -> Verdict:
    """Verdict on a run whose records are too sparse to exclude savings: it needs another trace."""
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
        typical=False,
    )


def shares(verdicts: Iterable[tuple[Verdict, StoredRun]]) -> dict[tuple[str, str], Share]:
    """Shares by application and user."""
    by_pair: dict[tuple[str, str], list[tuple[Verdict, StoredRun]]] = {}
    for judged, run in verdicts:
        if run.slowest_s:
            by_pair.setdefault((run.application, run.user), []).append((judged, run))
    return {pair: _share(some) for pair, some in by_pair.items()}


def _share(some: Sequence[tuple[Verdict, StoredRun]]) -> Share:
    """The saving of one pair's runs: if some have a known gain, those without are ignored."""
    numbers = [entry for entry in some if state_of(entry[0].rule, entry[0].saved_high_s) != "gain_unknown"]
    known = numbers if any(judged.saved_high_s for judged, _ in numbers) else some
    slowest = np.array([run.slowest_s for _, run in known], np.float64)
    processes = np.array([run.processes for _, run in known], np.float64)
    low, expected, high = np.array(
        [(judged.saved_low_s, judged.saved_s, judged.saved_high_s) for judged, _ in known]
    ).T
    return Share(
        low=min(1.0, float((low / slowest).min())),
        expected=min(1.0, float((expected * processes).sum() / (slowest * processes).sum())),
        high=min(1.0, float((high / slowest).max())),
        best=max(
            known,
            key=lambda entry: (entry[0].saved_s * entry[1].processes, entry[0].rule != "", entry[0].digest),
        )[0],
        runs=len(known),
        typical=any(judged.typical for judged, _ in known),
    )


def _saved(expected: Expected | None) -> Floats:
    """Seconds that one recommendation saves of the time left by those before it: minimum, expected, maximum."""
    if expected is None or not expected.before or expected.before < 0 or expected.after is None:
        return np.zeros(3)
    # A factor without a finite bound leaves no time; without a range, the expected value is used.
    central = expected.speedup if expected.after > 0 else np.inf
    ends = [expected.low or central, central, expected.high or central]
    factors = np.maximum(1.0, np.array([end or 1.0 for end in ends], np.float64))
    return expected.before * (1 - 1 / factors)


def _together(saved: Sequence[Floats], most: float) -> Floats:
    """Seconds of `most` that recommendations save one after another: minimum, expected, maximum.

    If the earlier ones save more than expected, the next one saves the same share of a smaller rest. If they save
    less, it saves no more seconds than expected. So no second is counted twice.
    """
    left = np.full(3, most)
    for ends in saved:
        part = np.minimum(1.0, ends / left[1]) if left[1] > 0 else np.zeros(3)
        left = left - np.minimum(ends, part * left)
    return most - left


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
    return format_number(value) if isinstance(value, float) else str(value)
