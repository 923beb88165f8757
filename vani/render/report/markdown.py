"""A report as Markdown for a merge request: the important parts are visible, everything else is folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from vani.render.report.bounds import LEVELS
from vani.render.report.items import Item
from vani.render.report.report_model import Gap, Inputs, Prepared, prepare
from vani.render.report.tables import Row, Table, one_by_one
from vani.render.table import code, escaped, fenced
from vani.units import counted

MOST_LETTERS: Final = 60_000
"""Code hosts accept comments of at most 65,536 characters."""

_LIMITS: Final = replace(LEVELS[2], groups=15, rows=15, calls=6, items=10, lines=20, path=120, prose=900)

_PATHS: Final = ("files", "folders", "traces")
"""Tables whose first column contains paths."""


def to_markdown(inputs: Inputs, **_: object) -> str:
    """Write the report; folds that do not fit are omitted, the last first, and named at the end."""
    report = prepare(inputs, _LIMITS, with_plots=False)
    top = _top(report)
    folds = list(_folds(report))
    left_out: list[str] = []
    while True:
        text = (
            "\n".join([*top, *(line for _, lines in folds for line in lines), *_end(report, left_out)]) + "\n"
        )
        if len(text) <= MOST_LETTERS or not folds:
            return text
        left_out.insert(0, folds.pop()[0])


def _top(report: Prepared) -> list[str]:
    verdict = report.verdict
    lines = [f"**{escaped(report.damage)}**", ""] if report.damage else []
    lines += [
        f"## I/O of {escaped(report.title)}",
        "",
        f"**{escaped(verdict.headline)}.** {escaped(verdict.sentence)}",
        "",
    ]
    facts = report.facts
    lines += [", ".join(f"{fact.label}: {escaped(fact.value)}" for fact in report.identity) + ".", ""]
    lines += [
        f"| {' | '.join(fact.label for fact in facts)} |",
        f"| {' | '.join('---' for _ in facts)} |",
        f"| {' | '.join(escaped(fact.value) for fact in facts)} |",
        "",
    ]
    lines += [line for remark in report.remarks for line in (f"> {escaped(remark)}", "")]
    for item in report.todo:
        lines += _item(item)
    if not report.todo:
        lines += [f"{report.verdict.without_advice}.", ""]
    return [*lines, escaped(report.machine), ""]


def _item(item: Item) -> list[str]:
    gain = escaped(item.gain) if item.has_gain else f"Expected gain: {escaped(item.gain)}"
    lines = [
        f"### {item.number}. {escaped(item.title)}",
        "",
        f"{item.severity}, {escaped(item.sure)}, for {code(item.target)}"
        f"{f' of {escaped(item.app)}' if item.app else ''} ({escaped(item.rule)} {escaped(item.name)}). {gain}.",
        "",
        escaped(item.reason),
        "",
    ]
    if item.lines:
        lines += [*fenced(item.lines), ""]
    if item.left_lines:
        lines += [f"{item.left_lines} more lines{escaped(item.rest)}.", ""]
    return lines


def _folds(report: Prepared) -> Iterable[tuple[str, list[str]]]:
    others = report.advice[len(report.todo) :]
    if others:
        lines = [line for item in others for line in _item(item)]
        yield _fold(
            f"{len(others)} more recommendations" if len(others) > 1 else "One more recommendation", lines
        )
    yield _fold("Where the time goes", _cost(report))
    if report.diagnosis is not None:
        yield _fold("Behaviour of the program", _table(report.diagnosis))
    if report.balance.rows:
        yield _fold("Balance of processes", _table(report.balance))
    if len(report.apps.rows) > 1 or (report.dependencies is not None and report.dependencies.rows):
        yield _fold("Apps", _table(report.apps) + _table(report.dependencies))
    if report.files.rows:
        yield _fold("Files", _table(report.files) + _table(report.folders))
    if report.phases is not None and report.phases.rows:
        yield _fold("Phases", _table(report.phases))
    if report.silent:
        rules = [
            f"- {escaped(silent.rule)} {escaped(silent.name)}: {escaped(silent.why)}"
            for silent in report.silent
        ]
        yield _fold(f"{counted(len(rules), 'rule', 'has', 'have')} nothing to recommend", [*rules, ""])
    if report.gaps:
        yield _fold("Unknown values", [*(_gap(gap) for gap in report.gaps), ""])
    if report.extensions is not None and report.extensions.rows:
        yield _fold("Other measures", _table(report.extensions))
    yield _fold("About this report", _about(report))


def _cost(report: Prepared) -> list[str]:
    split = [f"Metadata: {escaped(one_by_one(report.metadata))}.", ""] if report.metadata is not None else []
    return [
        *_table(report.kinds),
        *_table(report.calls),
        *split,
        *_table(report.libraries),
        *_table(report.layers),
    ]


def _gap(gap: Gap) -> str:
    return f"- {escaped(gap.reason)}: {', '.join(code(name) for name in gap.attributes)}"


def _about(report: Prepared) -> list[str]:
    return [
        *_table(report.traces),
        f"- profile: sha256 {code(report.sources.profile_sha256)}",
        f"- machine: {escaped(report.sources.system)}, sha256 {code(report.sources.system_sha256)}",
        *(f"- left out: {escaped(line)}" for line in report.left_out),
        "",
    ]


def _end(report: Prepared, left_out: list[str]) -> list[str]:
    lines = [f"Left out for its length: {escaped(', '.join(left_out))}.", ""] if left_out else []
    return [*lines, f"Vani {escaped(report.sources.version)}"]


def _fold(title: str, lines: list[str]) -> tuple[str, list[str]]:
    # Without the empty lines a code host takes the tables for HTML.
    return title, ["<details>", f"<summary>{title}</summary>", "", *lines, "</details>", ""]


def _table(table: Table | None) -> list[str]:
    if table is None or not table.rows:
        return []
    columns = table.columns
    lines = [
        escaped(table.caption).replace("\\`", "`"),
        "",
        f"| {' | '.join(column.title for column in columns)} |",
        f"| {' | '.join('---:' if column.number else '---' for column in columns)} |",
        *(_row(row, is_path=table.name in _PATHS) for row in table.rows),
        "",
    ]
    if table.left_out:
        lines += [f"{table.left_out:,} more rows are not shown.", ""]
    return lines


def _row(row: Row, *, is_path: bool) -> str:
    cells = []
    for place, cell in enumerate(row.cells):
        text = code(cell.text).replace("|", "\\|") if is_path and not place else escaped(cell.text)
        cells.append(f"{text} ({escaped(cell.note)})" if cell.note else text)
    return f"| {' | '.join(cells)} |"
