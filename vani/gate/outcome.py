"""The outcome of a check for one attribute, before exceptions are applied and outcomes are sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from vani.gate.matching import Match, Trail
from vani.schema.check import Judgement, Level, PolicyPlace

Kind = Literal["budget", "change", "rule", "missing", "exception", "tuned"]
Status = Literal["pass", "fail", "excepted", "unknown"]

LISTED: Final = 100
"""Most passing judgements of a check that are listed one by one; the same limit applies to unknown ones."""


@dataclass(frozen=True)
class Outcome:
    """A judgement, with details for exceptions and summaries."""

    judgement: Judgement
    rule: tuple[str, ...] = ()
    """Id and name of the rule that fired."""
    stripped: str | None = None
    """The target without the parts that differ from run to run."""


def judgement(
    check: str,
    kind: Kind,
    status: Status,
    level: Level,
    message: str,
    *,
    against: str,
    attribute: str | None = None,
    target: str | None = None,
    value: int | float | str | bool | None = None,
    limit: str | None = None,
    baseline: int | float | None = None,
    change: float | None = None,
    reason: str | None = None,
    todo: str | None = None,
    place: PolicyPlace | None = None,
) -> Judgement:
    """Build a judgement. `against` names the thing that was checked and makes the id unique."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    return Judgement(
        id=check if against == check else f"{check}: {against}",
        check=check,
        kind=kind,
        level=level,
        status=status,
        attribute=attribute,
        target=target,
        value=value,
        limit=limit,
        baseline=baseline,
        change=change,
        message=message,
        reason=reason,
        todo=todo,
        excepted=None,
        place=place,
    )


def stripped_target(match: Match) -> str | None:
    """The stripped path of the file that a match belongs to, or another target as it is."""
    identities = [step for step in match.trail if isinstance(step, tuple)]
    return str(identities[-1][0]) if identities and isinstance(identities[-1][0], str) else match.target


class Pending(NamedTuple):
    """An outcome whose text is written only if it is listed, because 10,000 passing files become one sentence."""

    status: Status
    trail: Trail
    closeness: float
    write: Callable[[], Outcome]


def folded(outcomes: Sequence[Pending]) -> list[Outcome]:
    """The outcomes of one check. More than `LISTED` passing or unknown ones are merged into one."""
    listed = [outcome.write() for outcome in outcomes if outcome.status == "fail"]
    for status in ("pass", "unknown"):
        same = [outcome for outcome in outcomes if outcome.status == status]
        listed += [outcome.write() for outcome in same] if len(same) <= LISTED else [_summary(same)]
    return listed


def _summary(same: Sequence[Pending]) -> Outcome:
    closest = max(outcome.closeness for outcome in same)
    first = min(
        (outcome for outcome in same if outcome.closeness == closest), key=lambda outcome: repr(outcome.trail)
    )
    example = first.write().judgement
    summary = "pass; closest to the limit" if example.status == "pass" else "are unknown; one of them"
    texts = {
        "id": f"{example.check}: all that {example.status}",
        "message": f"{len(same):,} {summary}: {example.message}",
    }
    return Outcome(example.model_copy(update=texts))
