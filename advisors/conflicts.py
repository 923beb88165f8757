"""Resolves recommendations that contradict each other on a file.

A rule's `settles` names what it decides about a file. Two findings contradict each other if they share a file and
either decide the same thing differently, or one makes the other moot (see `MOOT`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vani.advisors.rule import Finding, Rule
from vani.units import format_number

MOOT: frozenset[frozenset[str]] = frozenset(
    {
        # A file that moves to other storage has no stripes here.
        frozenset({"location", "layout"}),
    }
)
"""Pairs of `settles` that cannot both be followed for the same file."""


@dataclass(frozen=True)
class Judged:
    """A finding, its rule, and the seconds that it is expected to save (0 if unknown)."""

    rule: type[Rule]
    finding: Finding
    seconds: float

    @property
    def rank(self) -> tuple[float, float, float, str]:
        """Sort key, the better first: seconds saved, seconds touched, confidence, then the id."""
        return (-self.seconds, -self.finding.touched_s, -self.finding.confidence, self.rule.id)


def resolve(judged: Sequence[Judged]) -> tuple[list[Judged], list[tuple[Judged, str]]]:
    """Of contradicting findings, keep the one that saves more.

    Returns
    -------
    tuple
        The kept findings, best first, and each dropped one with a sentence that names the better one. A finding is
        kept or dropped as a whole, because a setting for a folder cannot apply to only some of its files.
    """
    winners: list[Judged] = []
    lost: list[tuple[Judged, str]] = []
    by_file: dict[str, list[Judged]] = {}
    for candidate in sorted(judged, key=lambda candidate: candidate.rank):
        winner, path = _contradicted(candidate, by_file)
        if winner is None:
            winners.append(candidate)
            if candidate.rule.settles:
                for path in candidate.finding.files:
                    by_file.setdefault(path, []).append(candidate)
        else:
            lost.append((candidate, _sentence(candidate, winner, path)))
    return winners, lost


def _contradicted(judged: Judged, by_file: dict[str, list[Judged]]) -> tuple[Judged | None, str]:
    if judged.rule.settles:
        for path in sorted(judged.finding.files):
            for other in by_file.get(path, ()):
                if _contradict(judged, other):
                    return other, path
    return None, ""


def _contradict(judged: Judged, other: Judged) -> bool:
    if judged.rule.settles == other.rule.settles:
        return dict(judged.finding.recommended) != dict(other.finding.recommended)
    return frozenset({judged.rule.settles, other.rule.settles}) in MOOT


def _sentence(loser: Judged, winner: Judged, path: str) -> str:
    def worth(judged: Judged) -> str:
        return f"{format_number(judged.seconds)} s" if judged.finding.known_gain is not None else "an unknown gain"

    return (
        f"{path}: given up for {winner.rule.id} ({winner.rule.name}), which contradicts it "
        f"and is expected to save {worth(winner)} against {worth(loser)}"
    )
