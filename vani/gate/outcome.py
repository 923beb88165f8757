"""What a check found about one attribute, before exceptions and order make a verdict of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from vani.gate.matching import Match, Trail
from vani.schema.check import Judgement, Level, PolicyPlace

__all__ = ["LISTED", "Outcome", "Pending", "Status", "folded", "judgement", "stripped_target"]

Kind = Literal["budget", "change", "rule", "missing", "exception"]
Status = Literal["pass", "fail", "excepted", "unknown"]

LISTED: Final = 100
"""Of one check, so many judgements that hold (and so many that say nothing) are listed one by one."""


@dataclass(frozen=True)
class Outcome:
    """A judgement, with what exceptions and summaries need to know."""

    judgement: Judgement
    rule: tuple[str, ...] = ()
    """Id and name of the rule that fired."""
    stripped: str | None = None
    """The target without what differs from run to run."""


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
    """Build a judgement; `against` is what the check was held against, which makes its id."""
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
    """The path of a file as its identity has it."""
    identities = [step for step in match.trail if isinstance(step, tuple)]
    return str(identities[-1][0]) if identities and isinstance(identities[-1][0], str) else match.target


class Pending(NamedTuple):
    """An outcome that is written down only if it is listed: of 10,000 files that hold, one sentence is left."""

    status: Status
    trail: Trail
    closeness: float
    write: Callable[[], Outcome]


def folded(outcomes: Sequence[Pending]) -> list[Outcome]:
    """The outcomes of one check; more than `LISTED` that hold, or that say nothing, become one."""
    kept = [one.write() for one in outcomes if one.status == "fail"]
    for status in ("pass", "unknown"):
        same = [one for one in outcomes if one.status == status]
        kept += [one.write() for one in same] if len(same) <= LISTED else [_summary(same)]
    return kept


def _summary(same: Sequence[Pending]) -> Outcome:
    closest = max(one.closeness for one in same)
    first = min((one for one in same if one.closeness == closest), key=lambda one: repr(one.trail))
    one = first.write().judgement
    what = "hold; nearest to the limit" if one.status == "pass" else "say nothing; one of them"
    told = {"id": f"{one.check}: all that {one.status}", "message": f"{len(same):,} {what}: {one.message}"}
    return Outcome(one.model_copy(update=told))
