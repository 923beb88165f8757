"""A ranking of runs as text, Markdown, HTML and CSV, which share sentences and cells."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.formats import Formats
from vani.render.table import cell, csv_table, escaped, markdown_table, table
from vani.units import counted, first_of, format_bytes, format_number, format_share

if TYPE_CHECKING:
    from vani.centre.history.schema import RankedRow, RankedSetting, Ranking, Saved
    from vani.centre.prediction.schema import BehaviourPrediction

_HOUR: Final = 3600.0
_LEAST: Final = 0.001
"""Core-hours below this are written as 0."""
_MEMBERS: Final = 3

Table = tuple[tuple[str, ...], Collection[int], list[tuple[str, ...]]]
"""Header, columns of text, and rows."""


def hours(seconds: float | None) -> str:
    """Core-hours with three digits: `95 k`, `1.59 M`."""
    value, units = (seconds or 0.0) / _HOUR, ["", " k", " M", " G"]
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


_WORDS: Final = {
    "pair": ("pair", "application", "user"), "user": ("user", "user"), "app": ("application", "application"),
    "category": ("category", "application", "user", "processes"),
    "file-system": ("file system", "file system", "mount"), "account": ("account", "account"), "qos": ("QOS", "QOS"),
}
"""The noun of each kind of group, and the heads of its names."""


def ranking_table(ranking: Ranking) -> Table:
    """The rows to show."""
    if ranking.settings is not None:
        return _settings(ranking.settings)
    _, *heads = _WORDS[ranking.by]
    head = ("", *heads, "runs", "in I/O", "waiting", "could be saved", "judged by", "one setting")
    rows = [
        (
            str(number), *_names(ranking.by, row), f"{row.runs:,}", hours(row.in_io_s),
            hours(row.waiting_s), saved_text(row.saved), "" if row.saved is None else judged_by(row.saved),
            f"{one_line(row.saved.setting)}  ({row.saved.rule})" if row.saved is not None and row.saved.rule else "",
        )
        for number, row in enumerate(worth_showing(ranking), start=1)
    ]
    return head, {*range(1, 1 + len(heads)), len(head) - 1}, rows


def worth_showing(ranking: Ranking) -> list[RankedRow]:
    """The rows that can save something; all if none is known to."""
    able = [row for row in ranking.rows if row.saved is not None and row.saved.state != "nothing_found"]
    return able or ranking.rows


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
    hold = "takes" if ranking.concentration == 1 else "take"
    line = f"{ranking.concentration:,} of {counted(ranking.groups, _WORDS[ranking.by][0])} {hold} 70 % of all I/O time."
    shown = worth_showing(ranking)
    if len(shown) < len(ranking.rows):
        line = f"{counted(len(ranking.rows) - len(shown), 'more row')} without a possible saving. {line}"
    first = shown[0]
    if first.application is None:
        return f"{line}  Next: vani history top"
    user = f" {_word(first.user)}" if first.user is not None else ""
    return f"{line}  Next: vani history show {_word(first.application)}{user}"


def _word(name: str | None) -> str:
    """A name as a single shell word."""
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
        named = [f"{one_line(member.application)} of {one_line(member.user)}" for member in setting.members]
        rows.append(
            (
                str(number), one_line(setting.setting), setting.rule, first_of(named, _MEMBERS), _range(setting),
                judged_by(setting), f"{len(setting.members):,}",
            )
        )
    return head, range(1, 4), rows


TITLE: Final = "Expected behaviour of the next runs"
ABOUT: Final = (
    "Behaviours are numbered by first appearance in a category (application, user, processes). Runs have the "
    "same behaviour if their bytes and metadata operations agree within a factor of 1.2. The table shows the "
    "last 30 runs, oldest first, and how many of them matched the prediction from earlier runs."
)


def next_table(predictions: Sequence[BehaviourPrediction]) -> Table:
    """A row per category; the names and the behaviours over time are text."""
    head = (
        "", "application", "user", "processes", "behaviours over time", "as expected", "next", "probability", "read",
        "written", "similar runs",
    )  # fmt: skip
    return head, range(1, 5), [_next_row(number, prediction) for number, prediction in enumerate(predictions, start=1)]


def _next_row(number: int, prediction: BehaviourPrediction) -> tuple[str, ...]:
    predicted = [run for run in prediction.past if run.expected is not None]
    right = sum(run.expected == run.behaviour for run in predicted)
    names = (
        str(number), one_line(prediction.application), one_line(prediction.user or ""),
        f"{prediction.processes or 0:,}",
    )
    over_time = _over_time([run.behaviour for run in prediction.past])
    known = f"{right:,} of {len(predicted):,}" if predicted else "no predictions"
    if not prediction.behaviours:
        return (*names, over_time, known, "not known", "", "", "", "")
    likely = prediction.behaviours[0]
    return (
        *names, over_time, known, str(likely.behaviour), format_share(likely.probability),
        format_bytes(likely.bytes_read.median), format_bytes(likely.bytes_written.median), f"{likely.runs:,}",
    )


def _over_time(behaviours: Sequence[int]) -> str:
    """`0 x12, 1, 0 x3`."""
    runs = [(behaviour, len(list(some))) for behaviour, some in groupby(behaviours)]
    return ", ".join(f"{behaviour} x{often}" if often > 1 else str(behaviour) for behaviour, often in runs)


_WIDTH: Final = 110


def to_text(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write the table; the last column is prose and is not padded."""
    head, left, rows = ranking_table(ranking)
    lines = [headline(ranking)]
    if rows:
        lines += table(head, rows, left=left, all_rows=True)
    elif ranking.settings is not None:
        lines.append("no judged run could save time by a setting")
    lines.append(next_step(ranking))
    if next_runs:
        head, left, rows = next_table(next_runs)
        lines += ["", f"{TITLE}.", *wrap(ABOUT, _WIDTH), *table(head, rows, left=left, all_rows=True)]
    return "\n".join(lines) + "\n"


def to_markdown(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write tables; names from logs cannot be markup or links."""
    lines = ["# Largest losses in I/O", "", escaped(headline(ranking)), "", *_markdown(*ranking_table(ranking))]
    lines += ["", escaped(next_step(ranking))]
    if next_runs:
        lines += ["", f"## {TITLE}", "", escaped(ABOUT), "", *_markdown(*next_table(next_runs))]
    return "\n".join(lines) + "\n"


def _markdown(head: tuple[str, ...], left: Collection[int], rows: list[tuple[str, ...]]) -> list[str]:
    right = [column for column in range(len(head)) if column and column not in left]
    return markdown_table(head, [[escaped(cell) for cell in row] for row in rows], right=right)


_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "body{color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid #ccc;text-align:left}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#444}}"
)


def to_html(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write the page."""
    behaviours = (
        f"<h2>{escape(TITLE)}</h2>\n<p>{escape(ABOUT)}</p>\n{_html_table(*next_table(next_runs))}\n" if next_runs
        else ""
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Largest losses in I/O</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>Largest losses in I/O</h1>\n<p>{escape(headline(ranking))}</p>\n"
        f"{_html_table(*ranking_table(ranking))}\n"
        f"<p>{escape(next_step(ranking))}</p>\n{behaviours}</body></html>\n"
    )


def _html_table(head: tuple[str, ...], left: Collection[int], rows: list[tuple[str, ...]]) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        marks = [tag if column in left else f'{tag} class="n"' for column in range(len(cells))]
        shown = [f"<{mark}>{escape(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True)]
        return f"<tr>{''.join(shown)}</tr>"

    body = "\n".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead>\n<tbody>\n{body}\n</tbody></table>"


NAMES: Final = ("application", "user", "processes", "file_system", "mount", "account", "qos")
COSTS: Final = ("runs", "core_s", "in_io_s", "waiting_s")
_SAVED: Final = (
    "low_s", "expected_s", "high_s", "judged_share", "rule", "setting", "why", "state", "judged_runs",
    "typical_machine",
)  # fmt: skip
_SETTING: Final = ("rule", "setting", "why", "low_s", "expected_s", "high_s", "judged_runs", "typical_machine")


def to_csv(ranking: Ranking) -> str:
    """Write one row for each group, or for each pair that a setting would help.

    Seconds are sums over processes, and unknown values are empty.
    """
    if ranking.settings is not None:
        rows = [
            [*(getattr(setting, name) for name in _SETTING), member.application, member.user, member.expected_s]
            for setting in ranking.settings for member in setting.members
        ]
        head = [*_SETTING, "application", "user", "member_expected_s"]
    else:
        head = [*NAMES, *COSTS, *(f"saved_{name}" if name.endswith("_s") else name for name in _SAVED)]
        rows = [
            [*(getattr(row, name) for name in (*NAMES, *COSTS)), *(getattr(row.saved, name, None) for name in _SAVED)]
            for row in ranking.rows
        ]
    return csv_table([head, *([cell(value) for value in row] for row in rows)])


FORMATS: Final[Formats[str]] = Formats(
    {
        "text": "vani.centre.history.ranking_text:to_text", "json": None,
        "csv": "vani.centre.history.ranking_text:to_csv",
        "markdown": "vani.centre.history.ranking_text:to_markdown",
        "html": "vani.centre.history.ranking_text:to_html",
    },
    {"text": (".txt",), "markdown": (".md", ".markdown"), "html": (".html", ".htm")},
)
"""Formats of a ranking; writers of text and pages also take `next_runs`."""
