"""Rows of a ranking: text, Markdown and HTML share the sentences and cells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.units import counted, format_number, format_share

if TYPE_CHECKING:
    from vani.centre.history.schema import RankedRow, RankedSetting, Ranking, Saved

_HOUR: Final = 3600.0
_LEAST: Final = 0.001
"""Core-hours below this are written as 0."""
_MEMBERS: Final = 3

Table = tuple[tuple[str, ...], int, list[tuple[str, ...]]]
"""Header, number of text columns from the left, and rows."""


def hours(seconds: float) -> str:
    """Core-hours with three digits: `95 k`, `1.59 M`."""
    value, units = seconds / _HOUR, ["", " k", " M", " G"]
    if value < _LEAST:
        return "0"
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{format_number(value)}{units[0]}" if value < 99.5 else f"{value:.0f}{units[0]}"


def headline(ranking: Ranking) -> str:
    """The period, the number of runs, and their cost."""
    whole = ranking.whole
    line = (
        f"{when(ranking)}: {counted(whole.runs, 'run')}, {counted(whole.users, 'user')}, "
        f"{hours(whole.core_s)} core-hours; in I/O {hours(whole.in_io_s)}, waiting {hours(whole.waiting_s)}"
    )
    return f"{line}; {damaged(whole.damaged)}" if whole.damaged else line


def damaged(number: int) -> str:
    """The number of files that could not be read, and the command that lists them."""
    return f"{counted(number, 'file')} damaged (vani history damaged)"


def when(ranking: Ranking) -> str:
    """The period of the runs: a month, or two days."""
    first, last = ranking.whole.first, ranking.whole.last
    if first is None or last is None:
        return "No runs"
    begin, end = (datetime.fromtimestamp(moment, UTC) for moment in (first, last))
    if (begin.year, begin.month) == (end.year, end.month):
        return f"{begin:%B %Y}"
    return f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}"


def table(ranking: Ranking) -> Table:
    """The rows to show."""
    if ranking.settings is not None:
        return _settings(ranking.settings)
    heads = {
        "pair": ("application", "user"),
        "user": ("user",),
        "app": ("application",),
        "category": ("application", "user", "processes"),
        "file-system": ("file system", "mount"),
        "account": ("account",),
        "qos": ("QOS",),
    }[ranking.by]
    head = ("", *heads, "runs", "in I/O", "waiting", "could be saved", "judged by", "one setting")
    rows = [
        (
            str(number),
            *_names(ranking.by, row),
            f"{row.runs:,}",
            hours(row.in_io_s),
            hours(row.waiting_s),
            saved_text(row.saved),
            "" if row.saved is None else judged_by(row.saved),
            f"{one_line(row.saved.setting)}  ({row.saved.rule})" if row.saved is not None and row.saved.rule else "",
        )
        for number, row in enumerate(ranking.rows, start=1)
    ]
    return head, 1 + len(heads), rows


def saved_text(saved: Saved | None) -> str:
    """The possible saving with its range, or that it is unknown, or that there is none."""
    if saved is None:
        return "not judged"
    if saved.state != "saves":
        return {"gain_unknown": "gain not known", "nothing_found": "nothing found"}[saved.state]
    text = _range(saved)
    return text if saved.judged_share > 0.995 else f"{text}, {format_share(saved.judged_share)} judged"


def judged_by(saved: Saved | RankedSetting) -> str:
    """The number of judged runs, and the source of figures for a saving."""
    runs = counted(saved.judged_runs, "run")
    return f"{runs}, with figures of a typical machine" if saved.typical_machine and saved.high_s else runs


def _range(saved: Saved | RankedSetting) -> str:
    return f"{hours(saved.expected_s)} ({hours(saved.low_s)} to {hours(saved.high_s)})"


def next_step(ranking: Ranking) -> str:
    """The small number of groups that take most I/O time, and the next command."""
    if not ranking.rows:
        return "Next: vani history list shows the period of the stored runs"
    noun = {
        "pair": "pair", "user": "user", "app": "application", "category": "category", "file-system": "file system",
        "account": "account", "qos": "QOS",
    }[ranking.by]  # fmt: skip
    hold = "takes" if ranking.concentration == 1 else "take"
    line = f"{ranking.concentration:,} of {counted(ranking.groups, noun)} {hold} 70 % of all I/O time."
    first = ranking.rows[0]
    if first.application is None:
        return f"{line}  Next: vani history top"
    user = f" {_word(first.user)}" if first.user is not None else ""
    return f"{line}  Next: vani history show {_word(first.application)}{user}"


def _word(name: str | None) -> str:
    """A name as a single shell word."""
    import shlex  # noqa: PLC0415 - only where a name is shown

    return shlex.quote(one_line(name or ""))


def _names(by: str, row: RankedRow) -> tuple[str, ...]:
    if by == "file-system":
        return one_line(row.file_system or "") or "unknown", one_line(row.mount or "")
    if by in ("account", "qos"):
        return (one_line(row.account or row.qos or "") or "not in the accounting",)
    names = [one_line(name) for name in (row.application, row.user) if name is not None]
    return (*names, f"{row.processes:,}") if by == "category" else tuple(names)


def _settings(settings: list[RankedSetting]) -> Table:
    head: tuple[str, ...] = ("", "one setting", "rule", "would serve", "could be saved", "judged by", "pairs")
    rows: list[tuple[str, ...]] = []
    for number, setting in enumerate(settings, start=1):
        named = ", ".join(
            f"{one_line(m.application)} of {one_line(m.user)}" for m in setting.members[:_MEMBERS]
        )
        more = len(setting.members) - _MEMBERS
        rows.append(
            (
                str(number),
                one_line(setting.setting),
                setting.rule,
                named + (f" and {more:,} more" if more > 0 else ""),
                _range(setting),
                judged_by(setting),
                f"{len(setting.members):,}",
            )
        )
    return head, 4, rows
