"""The groups of runs with the largest losses, by possible saving, and the settings that would achieve it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vani.centre.history.runs.read import GROUPS, Group, Period, Whole
from vani.centre.history.saved import Share, state_of
from vani.centre.history.schema import Member, RankedRow, RankedSetting, Ranking, Saved, WholeHistory

_MOST_TIME: Final = 0.7
_LITTLE: Final = 0.001
"""Share of all waiting. A smaller saving ranks below unknown gains, and less waiting below both."""
_COLUMNS: Final = ("application", "user", "processes", "file_system", "mount", "account", "qos")
Pair = tuple[str, str]


def ranking(
    groups: Sequence[Group],
    whole: Whole,
    shares: Mapping[Pair, Share],
    *,
    by: str,
    period: Period,
    limit: int,
    damaged: int,
    settings: bool = False,
) -> Ranking:
    """Rank groups of runs.

    Parameters
    ----------
    groups
        One group for each pair of application and user.
    shares
        Share of the waiting that judged pairs could save.
    limit
        Maximum number of rows and of settings.
    """
    members: dict[tuple[str | int, ...], list[Group]] = {}
    for group in groups:
        members.setdefault(group.names, []).append(group)
    rows = [_row(by, names, some, shares) for names, some in members.items()]
    little = _LITTLE * whole.waiting_s
    rows.sort(key=lambda row: (*_rank(row, little), -max(row.waiting_s, row.in_io_s), str(_key(row))))
    return Ranking.model_validate(
        {
            "by": by,
            "since": period.since,
            "until": period.until,
            "whole": WholeHistory(
                runs=whole.runs,
                users=whole.users,
                core_s=whole.core_s,
                in_io_s=whole.in_io_s,
                waiting_s=whole.waiting_s,
                first=whole.first,
                last=whole.last,
                damaged=damaged,
            ),
            "groups": len(rows),
            "concentration": _concentration([row.in_io_s for row in rows]),
            "rows": rows[:limit],
            "settings": _settings(groups, shares)[:limit] if settings else None,
        }
    )


def saved_of(groups: Iterable[Group], shares: Mapping[Pair, Share]) -> Saved | None:
    """The possible saving of groups together; None if none was judged."""
    known = [(group, shares[group.pair]) for group in groups if group.pair in shares]
    if not known:
        return None
    waiting = sum(group.waiting_s for group in groups)
    best = max(known, key=lambda pair: (pair[0].waiting_s * pair[1].expected, pair[1].best.rule != ""))[1].best
    judged = sum(group.waiting_s for group, _ in known)
    high = sum(group.waiting_s * share.high for group, share in known)
    return Saved(
        state=state_of(best.rule, high),
        low_s=sum(group.waiting_s * share.low for group, share in known),
        expected_s=sum(group.waiting_s * share.expected for group, share in known),
        high_s=high,
        judged_runs=sum(share.runs for share in {group.pair: share for group, share in known}.values()),
        typical_machine=any(share.typical for _, share in known),
        judged_share=min(1.0, judged / waiting) if waiting else 1.0,
        rule=best.rule,
        setting=best.setting,
        why=best.why,
    )


def _row(
    by: str, names: tuple[str | int, ...], some: Sequence[Group], shares: Mapping[Pair, Share]
) -> RankedRow:
    names_by_column: dict[str, Any] = dict(zip(GROUPS[by], names, strict=True))
    return RankedRow(
        **names_by_column,
        runs=sum(group.runs for group in some),
        core_s=sum(group.core_s for group in some),
        in_io_s=sum(group.in_io_s for group in some),
        waiting_s=sum(group.waiting_s for group in some),
        saved=saved_of(some, shares),
    )


def _rank(row: RankedRow, little: float) -> tuple[int, float]:
    """Sort key: known savings by size, then unknown gains, then small savings, then all others."""
    saved = row.saved
    if saved is not None and saved.state == "saves":
        return (0 if saved.expected_s >= little else 2), -saved.expected_s
    if saved is not None and saved.state == "gain_unknown" and row.waiting_s >= little:
        return 1, 0.0
    return 3, 0.0


def _key(row: RankedRow) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in _COLUMNS)


def _concentration(costs: Sequence[float]) -> int:
    """The number of groups that account for most of the time."""
    threshold, so_far = _MOST_TIME * sum(costs), 0.0
    for number, cost in enumerate(sorted(costs, reverse=True), start=1):
        so_far += cost
        if so_far >= threshold:
            return number if cost else 0
    return len(costs)


def _settings(groups: Sequence[Group], shares: Mapping[Pair, Share]) -> list[RankedSetting]:
    waiting: dict[Pair, float] = {}
    for group in groups:
        waiting[group.pair] = waiting.get(group.pair, 0.0) + group.waiting_s
    by_rule: dict[str, list[tuple[float, Pair, Share]]] = {}
    for pair, seconds in waiting.items():
        share = shares.get(pair)
        if share is not None and share.best.rule and seconds * share.expected > 0:
            by_rule.setdefault(share.best.rule, []).append((seconds, pair, share))
    settings = []
    for rule, some in by_rule.items():
        some.sort(key=lambda entry: (-entry[0] * entry[2].expected, entry[1]))
        best = some[0][2].best
        settings.append(
            RankedSetting(
                rule=rule,
                setting=best.setting,
                why=best.why,
                low_s=sum(seconds * share.low for seconds, _, share in some),
                expected_s=sum(seconds * share.expected for seconds, _, share in some),
                high_s=sum(seconds * share.high for seconds, _, share in some),
                judged_runs=sum(share.runs for _, _, share in some),
                typical_machine=any(share.typical for _, _, share in some),
                members=[
                    Member(application=pair[0], user=pair[1], expected_s=seconds * share.expected)
                    for seconds, pair, share in some
                ],
            )
        )
    return sorted(settings, key=lambda setting: (-setting.expected_s, setting.rule))
