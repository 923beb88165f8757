"""Findings that affect each other: contradictions, and the gain that the others leave.

A rule's `settles` names what it decides about a file. Two findings contradict each other if they share a file and
either decide the same thing differently, or one makes the other moot (see `MOOT`). A finding whose change removes what
another one acts on (`Finding.removes`) goes before it: a file that is opened once is not walked again at each open.

The gains of the others are chained: each starts from what the earlier ones leave of the same seconds. Two findings act
on the same seconds if their metrics have a kind of call in common, and their targets an app:

- if they are about the same files, the second acts on what the first leaves, and leaves no less than it would alone,
  because both may remove the same cause;
- a finding without files acts on all calls of its kind. Of two, the shorter part is assumed to be inside the longer
  one, which is the most that they can share. The remainder keeps the second's factor.

The call that the verdict names as the cause decides the order, before the gain: a reader who learns that `fsync` takes
half of the I/O time expects advice about flushing first.

The time in which any process is in calls of a kind limits all gains on that kind together, on any files. The slowest
process's time limits the gains on all kinds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from vani.advisors.access_table import data_calls, small_time_share
from vani.advisors.data_files import parts_of
from vani.advisors.gains import is_measurable, within
from vani.advisors.rule import Finding, Gain, Perhaps, Rule
from vani.advisors.small_requests import SMALL
from vani.models.verdict import verdict_of
from vani.units import format_number, format_seconds, format_share

if TYPE_CHECKING:
    from vani.models.io_time import IOTime
    from vani.schema.advice import NoRecommendation, Recommendation
    from vani.schema.profile import IOStats, Profile


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


Ranked: TypeAlias = "tuple[Judged, Recommendation]"


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
    roots = [other for other in judged if other.finding.removes]
    for candidate in sorted(judged, key=lambda candidate: candidate.rank):
        root = next((other for other in roots if _removes(other, candidate)), None)
        if root is not None:
            where = candidate.finding.target.path or candidate.finding.target.app
            lost.append((candidate, f"{where}: the change of {root.rule.id} ({root.rule.name}) removes this as well"))
            continue
        winner, path = _contradicted(candidate, by_file)
        if winner is None:
            winners.append(candidate)
            if candidate.rule.settles:
                for path in candidate.finding.files:
                    by_file.setdefault(path, []).append(candidate)
        else:
            lost.append((candidate, _sentence(candidate, winner, path)))
    return winners, lost


def _removes(root: Judged, other: Judged) -> bool:
    """True if the change of one finding removes what another acts on, on the same files or in the same app."""
    return root is not other and other.rule.settles in root.finding.removes and _meet(root, other)


def _meet(first: Judged, other: Judged) -> bool:
    if other.finding.files:
        return not first.finding.files.isdisjoint(other.finding.files)
    return first.finding.target.app == other.finding.target.app


def before_what_builds_on_them(ranked: list[Ranked]) -> list[Ranked]:
    """The pairs of a finding and its recommendation, each after those that its change builds on (`Finding.precedes`).

    Times of two traces differ while counts are equal, so they do not decide which of two such changes comes first.
    """
    ordered: list[Ranked] = []
    for entry in ranked:
        later = (
            place
            for place, (other, recommendation) in enumerate(ordered)
            if other.rule.settles in entry[0].finding.precedes
            and recommendation.severity != "info" != entry[1].severity
            and _meet(entry[0], other)
        )
        ordered.insert(next(later, len(ordered)), entry)
    return ordered


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


NOTHING_LEFT: Final = "the settings above already save almost all of the time that it affects"
"""Reason for a finding that gains something alone, but nothing after the others."""

_EVERY: Final = frozenset({"read", "write", "sync", "metadata"})
_KINDS: Final = {
    "read": frozenset({"read"}),
    # Layouts also act on the bytes that a flush waits for.
    "write": frozenset({"write", "sync"}),
    "data": frozenset({"read", "write"}),
    "sync": frozenset({"sync"}),
    "metadata": frozenset({"metadata"}),
    "runtime": frozenset[str](),
}
"""Kinds of calls that a gain acts on, by the first word of its metric. Other metrics act on all kinds."""


def together(ranked: Sequence[Judged], time: IOTime | None, profile: Profile) -> list[Finding]:
    """The findings, best first, with gains that add up: each acts on the I/O time that the earlier ones leave."""
    if time is None:
        return [judged.finding for judged in ranked]
    left = _Left(time, profile)
    followed: list[Finding] = []
    for judged in ranked:
        now, alone = judged.finding, judged.finding.known_gain
        # MAT001 is the bound that all others share, not one of them.
        if alone is not None and judged.rule.family != "matter":
            gain = _after(followed, alone, now)
            most = left.of(now, gain)
            bound = within(gain, most)
            if bound.before_s < alone.before_s or bound != gain:
                remaining = format_seconds(min(bound.before_s, most))
                bound = replace(bound, method=f"{gain.method}; of the {remaining} that those above leave")
            left.take(now, bound)
            now = replace(now, gain=bound if is_measurable(bound) else Perhaps(NOTHING_LEFT))
        followed.append(now)
    return followed


class _Left:
    """Seconds left of the slowest process's calls, and of each kind of call in an app or in the whole run."""

    def __init__(self, time: IOTime, profile: Profile) -> None:
        self._profile = profile
        self._whole = {"file_system": time.slowest_s, "libraries": time.calls_s}
        self._saved: list[tuple[frozenset[str], str | None, float]] = []

    def of(self, finding: Finding, gain: Gain) -> float:
        """Most seconds that a finding can act on."""
        left = [self._whole[finding.acts_on]]
        kinds = _kinds(gain)
        if finding.acts_on == "file_system" and kinds:
            # Gains on some of these calls come from the same seconds.
            for wider in {kinds, *(known for known, _, _ in self._saved if kinds < known)}:
                for app in {None, finding.target.app}:
                    saved = (
                        seconds
                        for known, its_app, seconds in self._saved
                        if known <= wider and (app is None or its_app == app)
                    )
                    left.append(_busy_s(self._profile, wider, app) - sum(saved))
        return max(0.0, min(left))

    def take(self, finding: Finding, gain: Gain) -> None:
        """Subtract what a finding saves."""
        self._whole["libraries"] -= gain.seconds
        if finding.acts_on == "file_system":
            self._whole["file_system"] -= gain.seconds
            self._saved.append((_kinds(gain), finding.target.app, gain.seconds))
        # Time in file-system calls is part of the time in calls.
        self._whole["file_system"] = max(0.0, min(self._whole.values()))


def _busy_s(profile: Profile, kinds: frozenset[str], app: str | None) -> float:
    """Upper bound of the time in which any process is in calls of these kinds; infinite if unknown."""
    rows = [(f"apps[{index}].io", row.io) for index, row in enumerate(profile.apps) if row.name == app]
    where, io = rows[0] if rows else ("workflow.io", profile.workflow.io)
    total = 0.0
    for kind in kinds:
        value = getattr(io.busy_s, kind)
        if value is not None:
            total += max(value, profile.bounds.get(f"{where}.busy_s.{kind}", (0.0, 0.0))[1])
        elif kind != "sync":
            return math.inf
        # If flushes have no time of their own, it is included in that of the other calls.
    return total


def _kinds(gain: Gain) -> frozenset[str]:
    return _KINDS.get(gain.metric.partition("_")[0], _EVERY)


def _share_time(first: Finding, second: Finding) -> bool:
    """True if both act on a common kind of call, and on the same app if both name one."""
    gains = [finding.known_gain for finding in (first, second)]
    apps = {finding.target.app for finding in (first, second)} - {None}
    kinds = [_kinds(gain) for gain in gains if gain is not None]
    return len(kinds) == len(gains) and len(apps) < len(gains) and not kinds[0].isdisjoint(kinds[1])


def _after(followed: Sequence[Finding], gain: Gain, now: Finding) -> Gain:
    """The gain of a finding after others that act on the same seconds."""
    for other in followed:
        known = other.known_gain
        if known is None or not _share_time(other, now):
            continue
        if other.files and now.files:
            gain = gain if other.files.isdisjoint(now.files) else _after_the_same(gain, known.seconds)
        elif not other.files and gain.before_s <= known.before_s:
            gain = within(gain, gain.before_s * known.after_s / known.before_s) if known.before_s else gain
        else:
            gain = within(gain, max(0.0, gain.before_s - known.seconds))
    return gain


def _after_the_same(gain: Gain, saved: float) -> Gain:
    """The gain after another on the same files, which may remove the same cause."""
    before = max(0.0, gain.before_s - saved)
    best, after = min(before, gain.best_s), min(before, gain.after_s)
    return replace(gain, before_s=before, best_s=best, after_s=after, worst_s=max(after, min(before, gain.worst_s)))


_SYNC: Final = frozenset({"sync"})
_METADATA: Final = frozenset({"metadata"})
_DATA: Final = frozenset({"read", "write"})
_ALL: Final = _DATA | _SYNC | _METADATA
_ACTS: Final = {
    "flush": _SYNC | {"write"}, "opening": _METADATA, "files": _METADATA, "directory": _METADATA, "metadata": _METADATA,
    "order": _DATA, "request-size": _DATA, "reading": {"read"}, "transfer": _DATA, "chunking": _DATA,
    "alignment": _DATA, "fill": _DATA, "layout": _DATA | _SYNC, "writers": _DATA | _SYNC, "reuse": _DATA | {"seek"},
    "caches": _DATA | {"seek"},
}  # fmt: skip
"""Kinds of calls that a recommendation acts on, by what its rule settles. Others act on all kinds."""

_FLUSHES: Final = ("fsync", "fdatasync", "fflush", "msync", "sync")
_MOVES: Final = {"read": "read", "recv": "read", "write": "write", "send": "write"}
# Our choice: less than a quarter of the difference between two shares is noise.
_STEPS: Final = 4


def kind_of(call: str) -> str:
    """The kind of a call, or of a kind of calls: read, write, sync, seek, lock or metadata."""
    name = call.lower()
    if name.removesuffix("64") in ("flock", "lockf", "fcntl"):
        return "lock"
    if any(word in name for word in _FLUSHES):
        return "sync"
    if "seek" in name:
        return "seek"
    return next((kind for word, kind in _MOVES.items() if word in name and "readlink" not in name), "metadata")


class Cause:
    """The named cause of a profile's I/O time."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self._cause, self._parts = profile, verdict_of(profile).cause, parts_of(profile)

    def acted_on(self, rule: type[Rule], finding: Finding) -> int:
        """Quarters of the cause's time that the recommendation acts on, 0 to 4."""
        call = self._cause.call if self._cause is not None else None
        if call is None or kind_of(call) not in _ACTS.get(rule.settles, _ALL | {"seek"}):
            return 0
        whole = _seconds(self._profile.workflow.io, call)
        if not finding.files or not whole:
            return _STEPS
        listed = zip(self._profile.files, self._parts, strict=True)
        acted_on = sum(
            _seconds(file.io, call) * part.time * (self._large(file.path, call) if rule.settles == "layout" else 1.0)
            for file, part in listed
            if file.path in finding.files
        )
        return round(_STEPS * min(1.0, acted_on / whole))

    def _large(self, path: str, call: str) -> float:
        """Share of requests that are not small in the time of a file's reads or writes: a layout changes only those."""
        kind = kind_of(call)
        rows = data_calls(self._profile, path, reads=kind == "read") if kind in _DATA else ()
        return 1.0 - small_time_share(rows, SMALL)

    def why_not(self, silent: Iterable[NoRecommendation]) -> str:
        """Why the rule that would act on the cause is silent; empty if there is no cause or no such rule."""
        call = self._cause.call if self._cause is not None else None
        rule = _RULES.get(kind_of(call)) if call is not None else None
        why = next((entry.why for entry in silent if entry.rule == rule), None)
        if self._cause is None or self._cause.share is None or why is None:
            return ""
        return f"{call} takes {format_share(self._cause.share)} of the I/O time; {rule} would act on it, but {why}."


_RULES: Final = {"sync": "POS010", "metadata": "POS003"}
"""The rule that acts on a kind of calls, where it is one."""


def _seconds(io: IOStats, call: str) -> float:
    """Seconds of a call, or of its kind if the source does not count functions."""
    known = [row.time_s or 0.0 for row in io.calls or () if row.name == call]
    return sum(known) if known else getattr(io.time_s, kind_of(call), None) or 0.0
