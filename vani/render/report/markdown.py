"""A report as Markdown for a merge request: the important parts are visible, everything else is folded."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from vani.render.report.facts import Item
from vani.render.report.model import Gap, Inputs, Report, prepare
from vani.render.report.tables import LEVELS, Row, one_by_one
from vani.render.table import code, escaped, fenced, markdown_table
from vani.units import counted

MAX_LETTERS: Final = 60_000
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
        text = ("\n".join([*top, *(line for _, lines in folds for line in lines), *_end(report, left_out)]) + "\n")
        if len(text) <= MAX_LETTERS or not folds:
            return text
        left_out.insert(0, folds.pop()[0])


def _top(report: Report) -> list[str]:
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
    lines += [*markdown_table([fact.label for fact in facts], [[escaped(fact.value) for fact in facts]]), ""]
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
        f"{escaped(item.sure)}, for {code(item.target)}"
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


def _folds(report: Report) -> Iterable[tuple[str, list[str]]]:
    others = report.advice[len(report.todo) :]
    if others:
        lines = [line for item in others for line in _item(item)]
        yield _fold(f"{len(others)} more recommendations" if len(others) > 1 else "One more recommendation", lines)
    tables = report.tables
    metadata = tables.get("metadata")
    split = [f"Metadata: {escaped(one_by_one(metadata))}.", ""] if metadata is not None else []
    cost = [*_tables(report, "kinds", "calls"), *split, *_tables(report, "libraries", "layers")]
    yield _fold("Where the time goes", cost)
    for title, *names in (
        ("Behaviour of the program", "diagnosis"),
        ("Balance of processes", "balance"),
        ("Apps", "apps", "dependencies"),
        ("Files", "files", "folders"),
        ("Phases", "phases"),
    ):
        # A single app needs no table, unless its processes depend on each other.
        deciding = names[1:] if names[0] == "apps" and len(tables["apps"].rows) < 2 else names[:1]
        if _tables(report, *deciding):
            yield _fold(title, _tables(report, *names))
    if report.silent:
        rules = [
            f"- {escaped(silent.rule)} {escaped(silent.name)}: {escaped(silent.why)}"
            for silent in report.silent
        ]
        yield _fold(f"{counted(len(rules), 'rule', 'has', 'have')} nothing to recommend", [*rules, ""])
    if report.gaps:
        yield _fold("Unknown values", [*(_gap(gap) for gap in report.gaps), ""])
    if lines := _tables(report, "extensions"):
        yield _fold("Other measures", lines)
    yield _fold("About this report", _about(report))


def _gap(gap: Gap) -> str:
    return f"- {escaped(gap.reason)}: {', '.join(code(name) for name in gap.attributes)}"


def _about(report: Report) -> list[str]:
    return [
        *_tables(report, "traces"),
        f"- profile: sha256 {code(report.sources.profile_sha256)}",
        f"- machine: {escaped(report.sources.system)}, sha256 {code(report.sources.system_sha256)}",
        *(f"- left out: {escaped(line)}" for line in report.left_out),
        "",
    ]


def _end(report: Report, left_out: list[str]) -> list[str]:
    lines = [f"Left out for its length: {escaped(', '.join(left_out))}.", ""] if left_out else []
    return [*lines, f"Vani {escaped(report.sources.version)}"]


def _fold(title: str, lines: list[str]) -> tuple[str, list[str]]:
    # Without the empty lines a code host takes the tables for HTML.
    return title, ["<details>", f"<summary>{title}</summary>", "", *lines, "</details>", ""]


def _tables(report: Report, *names: str) -> list[str]:
    """Lines of those tables that have rows."""
    lines = []
    for table in (report.tables[name] for name in names if name in report.tables):
        if table.rows:
            numbers = [place for place, column in enumerate(table.columns) if column.number]
            rows = [_row(row, is_path=table.name in _PATHS) for row in table.rows]
            columns = [column.title for column in table.columns]
            caption = escaped(table.caption).replace("\\`", "`")
            lines += [caption, "", *markdown_table(columns, rows, right=numbers), ""]
        if table.left_out:
            lines += [f"{table.left_out:,} more rows are not shown.", ""]
    return lines


def _row(row: Row, *, is_path: bool) -> list[str]:
    cells = []
    for place, cell in enumerate(row.cells):
        text = code(cell.text, in_table=True) if is_path and not place else escaped(cell.text)
        cells.append(f"{text} ({escaped(cell.note)})" if cell.note else text)
    return cells
