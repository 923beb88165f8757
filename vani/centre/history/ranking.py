"""`vani history top`: the groups of runs with the largest losses by possible saving, and the settings that save most.

The advice on a few runs represents all runs of an application by a user. Their expected savings are converted to
shares, and applied to the waiting of all runs, from the smallest that one of the runs promises to the largest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
import numpy as np
from pydantic import Field

from vani.centre.columns import Floats
from vani.centre.history.ranking_text import COSTS, FORMATS, NAMES
from vani.centre.history.rows import StoredRun, Verdict
from vani.centre.history.runs import read
from vani.centre.history.runs.read import GROUPS, Group, Period, Whole
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Member, RankedRow, RankedSetting, Ranking, Saved, State, WholeHistory
from vani.centre.history.settings import PeriodSettings
from vani.cli.options import format_option, output_option, settings_options
from vani.cli.output import check_outputs, emit
from vani.errors import one_line
from vani.schema.advice import Advice, Direction, Expected, Recommendation
from vani.units import KiB, format_bytes, format_number, format_seconds, lfs_size

if TYPE_CHECKING:
    import sqlalchemy as sa

_MATTER = "MAT001"
_STRIPES = re.compile(r"lfs setstripe (?P<options>(?:-[A-Za-z] \S+ )+)")
_LINES = 20
_WEIGHTS: Final = {"high": 3, "medium": 2, "low": 1, "info": 0}
"""Severities as numbers."""

Pair = tuple[str, str]


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


def pairs_that_matter(groups: Sequence[Group], most: int, judged: Mapping[Pair, Share] | None = None) -> list[Pair]:
    """Application and user of the pairs that cost most, by either kind of cost; one of each application first.

    Where the first one of an application proved healthy, its other users come last.
    """
    cost = {group.pair: max(group.waiting_s, group.in_io_s) for group in groups}
    healthy = {pair[0] for pair, share in (judged or {}).items() if not share.best.severity and not share.high}
    nth: Counter[str] = Counter()
    turns = []
    for pair in sorted(cost, key=lambda pair: (-cost[pair], pair)):
        turns.append((nth[pair[0]] > 0 and pair[0] in healthy, nth[pair[0]], pair))
        nth[pair[0]] += 1
    # Otherwise the users of one healthy application would use up all turns.
    return [pair for *_, pair in sorted(turns, key=lambda turn: turn[:2]) if cost[pair] > 0][:most]


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
    number = max(range(len(worth)), key=lambda i: (*saved[i][1:], _WEIGHTS[worth[i].severity]), default=None)
    if number is None and advice.verdict is not None and advice.verdict.matters == "open":
        return _open(advice, run)
    low, expected, high = _together(saved, run.slowest_s or 0.0).tolist()
    if number is None:
        return Verdict(run.digest, advice.system.name or "", low, expected, high, "", "", "", (), typical, 0)
    best = worth[number]
    doubt = f" ({best.expected.why_no_number})" if isinstance(best.expected, Direction) else ""
    why = one_line(f"{findings.get(best.rule, best.name)}{doubt}")
    words = (best.rule, one_line(_setting(best)), why, _one_lines(best.apply), typical, _WEIGHTS[best.severity])
    return Verdict(run.digest, advice.system.name or "", low, expected, high, *words)


def _open(advice: Advice, run: StoredRun) -> Verdict:
    """Verdict on a run whose records are too sparse to exclude savings: it needs another trace."""
    assert advice.verdict is not None
    remedy = [] if advice.verdict.remedy is None else [f"# {advice.verdict.remedy}"]
    words = (_MATTER, "not known: trace it again", one_line(advice.verdict.sentence), _one_lines(remedy))
    return Verdict(run.digest, advice.system.name or "", 0.0, 0.0, 0.0, *words, False, 1)


def _one_lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(one_line(line) for line in lines[:_LINES])


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
    low, expected, high = np.array([(judged.saved_low_s, judged.saved_s, judged.saved_high_s) for judged, _ in known]).T
    return Share(
        low=min(1.0, float((low / slowest).min())),
        expected=min(1.0, float((expected * processes).sum() / (slowest * processes).sum())),
        high=min(1.0, float((high / slowest).max())),
        best=max(
            known, key=lambda entry: (entry[0].saved_s * entry[1].processes, entry[0].rule != "", entry[0].digest),
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
    settings = ", ".join(_setting_part(name, value) for name, value in recommendation.recommended.items())
    return recommendation.name.replace("-", " ") + (f": {settings}" if settings else "")


def _setting_part(name: str, value: object) -> str:
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


_MAX_TIME: Final = 0.7
_LITTLE: Final = 0.001
"""Share of all waiting. A smaller saving ranks below unknown gains, and less waiting below both."""
_SHARES: Final = ("low", "expected", "high")


def ranking(
    groups: Sequence[Group], whole: Whole, shares: Mapping[Pair, Share], *, by: str, period: Period,
    limit: int, damaged: int, settings: bool = False,
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
    rows.sort(key=lambda row: (*_rank(row, little), -max(row.waiting_s, row.in_io_s), str(attrgetter(*NAMES)(row))))
    return Ranking.model_validate(
        {
            "by": by, "since": period.since, "until": period.until,
            "whole": WholeHistory(**asdict(whole), damaged=damaged), "groups": len(rows),
            "concentration": _concentration([row.in_io_s for row in rows]), "rows": rows[:limit],
            "settings": _settings(groups, shares)[:limit] if settings else None,
        }
    )


def ranking_in(
    connection: sa.Connection, period: Period, *, by: str = "pair", limit: int, settings: bool = False
) -> Ranking:
    """Rank the runs of a period in a history; parameters as in `ranking`."""
    return ranking(
        read.groups(connection, by, period), read.whole(connection, period),
        shares(read.verdicts(connection)), by=by, period=period, limit=limit,
        damaged=read.count_damaged(connection), settings=settings,
    )  # fmt: skip


def saved_of(groups: Iterable[Group], shares: Mapping[Pair, Share]) -> Saved | None:
    """The possible saving of groups together; None if none was judged."""
    known = [(group, shares[group.pair]) for group in groups if group.pair in shares]
    if not known:
        return None
    waiting = sum(group.waiting_s for group in groups)
    best = max(known, key=lambda pair: (pair[0].waiting_s * pair[1].expected, pair[1].best.rule != ""))[1].best
    judged = sum(group.waiting_s for group, _ in known)
    ends = [sum(group.waiting_s * getattr(share, end) for group, share in known) for end in _SHARES]
    state = state_of(best.rule, ends[2])
    low_s, expected_s, high_s = [None] * 3 if state == "gain_unknown" else ends
    return Saved(
        state=state, low_s=low_s, expected_s=expected_s, high_s=high_s,
        judged_runs=sum(share.runs for share in {group.pair: share for group, share in known}.values()),
        typical_machine=any(share.typical for _, share in known),
        judged_share=min(1.0, judged / waiting) if waiting else 1.0,
        rule=best.rule, severity=best.severity, setting=best.setting, why=best.why,
    )  # fmt: skip


def _row(by: str, names: tuple[str | int, ...], some: Sequence[Group], shares: Mapping[Pair, Share]) -> RankedRow:
    values: dict[str, Any] = dict(zip(GROUPS[by], names, strict=True))
    values |= {name: sum(getattr(group, name) for group in some) for name in COSTS}
    return RankedRow(**values, saved=saved_of(some, shares))


def _rank(row: RankedRow, little: float) -> tuple[int, float]:
    """Sort key: known savings by size, unknown gains by severity times waiting, small savings, others."""
    saved = row.saved
    if saved is None:
        return 3, 0.0
    if saved.expected_s and saved.state == "saves":
        return (0 if saved.expected_s >= little else 2), -saved.expected_s
    weight = saved.severity * row.waiting_s if saved.state == "gain_unknown" else 0.0
    return (1 if weight >= little else 3), -weight


def _concentration(costs: Sequence[float]) -> int:
    """The number of groups that account for most of the time."""
    so_far = np.cumsum(sorted(costs, reverse=True))
    return int(np.searchsorted(so_far, _MAX_TIME * so_far[-1])) + 1 if any(costs) else 0


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
        members = [Member(application=app, user=user, expected_s=s * share.expected) for s, (app, user), share in some]
        ends = {f"{end}_s": sum(seconds * getattr(share, end) for seconds, _, share in some) for end in _SHARES}
        setting = RankedSetting(
            rule=rule, setting=best.setting, why=best.why, **ends, members=members,
            judged_runs=sum(share.runs for *_, share in some), typical_machine=any(share.typical for *_, share in some),
        )  # fmt: skip
        settings.append(setting)
    return sorted(settings, key=lambda setting: (-setting.expected_s, setting.rule))


class TopSettings(PeriodSettings):
    """The groups to rank."""

    by: Literal["pair", "user", "app", "category", "file-system", "account", "qos"] = Field(
        "pair",
        description="Sum by pair (application and user), category (also number of processes), ...; account "
        "and qos need `vani history import sacct.csv`.",
    )
    limit: int = Field(20, ge=1, le=1_000_000, description="Maximum number of rows.")
    settings: bool = Field(False, description="Rank settings by total saving, with the users who would benefit.")


def history_top(settings: TopSettings | None = None, /, **fields: Any) -> Ranking:
    """Rank users and applications by lost time, with the setting that would save most, without reading logs.

    Raises
    ------
    InputError
        There is no history, or a day or a limit is invalid.
    """
    wanted = TopSettings.of(settings, **fields)
    period = wanted.period
    with Store(wanted.db).reading() as connection:
        return ranking_in(connection, period, by=wanted.by, limit=wanted.limit, settings=wanted.settings)


@click.command("top")
@settings_options(TopSettings)
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def command(settings: TopSettings, kind: str | None, output: Path | None) -> None:
    """Rank the largest losses in I/O, with the setting that would save most.

    Costs are core-hours: "in I/O" is the time of all processes in I/O calls, "waiting" is the slowest process's
    I/O time times the number of processes. Possible savings are from advice on runs that `add` judged.
    """
    check_outputs([output])
    emit(FORMATS.render(FORMATS.chosen(kind, output, "text"), history_top(settings)), output)
