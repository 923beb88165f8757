"""A report as plain text for a terminal of 80 columns, a mail or a log."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from vani.render.answers import shortened
from vani.render.report.facts import Item
from vani.render.report.model import Inputs, Report, prepare
from vani.render.report.tables import LEVELS, Cell, Column, one_by_one

_WIDTH: Final = 80
_LEAST_NAME: Final = 16
_LIMITS: Final = replace(LEVELS[2], groups=12, rows=12, calls=6, items=10, lines=30, path=240, prose=800)

# Columns of a wide table that are worth the space; unlisted tables show all.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("Layer", "App", "Calls", "Read", "Written", "Time"),
    "balance": ("App", "Slowest process", "Its I/O time", "Mean I/O time", "Times the mean"),
    "apps": ("App", "Processes", "Run time", "I/O share of its run", "Read", "Written"),
    "calls": ("Function", "Calls", "Time", "Share", "Bytes"),
    "folders": ("Folder", "Files", "Created", "Written", "Metadata time"),
    "dependencies": ("Writes", "Reads later", "Files", "Bytes read"),
    "files": ("File or dataset", "Role", "Read", "Written", "I/O time"),
    "phases": ("App", "Times", "Kind", "Begins", "Lasts", "Processes", "I/O time"),
}


_TABLES: Final = (
    ("Behaviour of the program", "diagnosis", 1),
    ("Where the time goes", "kinds", 1),
    ("Functions", "calls", 1),
    ("", "metadata", 0),
    ("Time in libraries", "libraries", 1),
    ("Layers", "layers", 1),
    ("Balance of processes", "balance", 1),
    ("Apps", "apps", 2),
    ("Dependencies", "dependencies", 1),
    ("Files", "files", 1),
    ("Folders", "folders", 2),
    ("Phases", "phases", 1),
)
"""Titles of tables, and the least number of rows of a table that is shown."""


def to_text(inputs: Inputs, **_: object) -> str:
    """Write the report. Only lines to paste are longer than 80 characters, because they must not wrap."""
    report = prepare(inputs, _LIMITS, with_plots=False)
    lines = [line.rstrip() for line in _lines(report)]
    return "\n".join(lines) + "\n"


def _lines(report: Report) -> Iterator[str]:
    if report.damage:
        yield from _wrapped(report.damage)
        yield ""
    yield from _wrapped(report.title)
    yield "=" * min(_WIDTH, len(report.title))
    yield from _facts(report)
    yield ""
    yield from _wrapped(f"{report.verdict.headline}. {report.verdict.sentence}")
    for remark in report.remarks:
        yield from _wrapped(f"Note: {remark}", hang=6)
    yield from _wrapped(report.machine)
    if report.todo:
        yield from _heading("What to do")
        for item in report.todo:
            yield from _item(item)
    else:
        yield ""
        yield f"{report.verdict.without_advice}."
    for title, name, least in _TABLES:
        yield from _table(title, report, name, least)
    others = report.advice[len(report.todo) :]
    if others:
        yield from _heading("Also noticed" if not report.todo else "Also")
        for item in others:
            yield from _wrapped(f"{item.rule} {item.name} ({item.severity}): {item.reason}", hang=2)
    if report.gaps:
        yield from _heading("Unknown values")
        for gap in report.gaps:
            yield from _wrapped(f"{', '.join(gap.attributes)}: {gap.reason}", hang=2)
    yield from _table("Other measures", report, "extensions")
    if report.left_out:
        yield from _heading("Left out here")
        for line in report.left_out:
            yield from _wrapped(line, hang=2)
    yield ""
    yield f"Vani {report.sources.version}, profile sha256 {report.sources.profile_sha256[:16]}"


def _heading(title: str) -> list[str]:
    return ["", title, "-" * len(title)]


def _wrapped(words: str, *, indent: int = 0, hang: int = 0) -> list[str]:
    front = " " * indent
    return textwrap.wrap(
        words, _WIDTH, initial_indent=front, subsequent_indent=front + " " * hang, break_on_hyphens=False
    ) or [""]


def _facts(report: Report) -> Iterator[str]:
    facts = (*report.identity, *report.facts)
    wide = max(len(fact.label) for fact in facts)
    for fact in facts:
        note = f" ({fact.note.replace('`', '')})" if fact.note else ""
        yield from _wrapped(f"{fact.label:<{wide}}  {fact.value}{note}", hang=wide + 2)


def _item(item: Item) -> Iterator[str]:
    yield from _wrapped(f"{item.number}. {item.name} ({item.rule}), {item.sure}", hang=3)
    yield from _wrapped(f"for {item.target}", indent=3)
    yield from _wrapped(f"{item.gain}." if item.has_gain else f"Expected gain: {item.gain}.", indent=3)
    yield from _wrapped(item.reason, indent=3)
    for line in item.lines:
        yield "     " + line
    if item.left_lines:
        yield f"     ({item.left_lines} more lines{item.rest})"
    yield ""


def _table(title: str, report: Report, name: str, least: int = 1) -> Iterator[str]:
    """A table with at least this many rows; a sentence for metadata operations."""
    table = report.tables.get(name)
    if table is None or len(table.rows) < least:
        return
    if name == "metadata":
        yield ""
        yield from _wrapped(f"Metadata: {one_by_one(table)}.", hang=2)
        return
    yield from _heading(title)
    yield from _wrapped(table.caption.replace("`", ""))
    titles = _COLUMNS.get(table.name)
    places = [i for i, column in enumerate(table.columns) if titles is None or column.title in titles]
    columns = [table.columns[i] for i in places]
    rows = [[row.cells[i] for i in places] for row in table.rows]
    widths = _widths(columns, rows)
    yield _line([column.title for column in columns], columns, widths)
    for cells in rows:
        yield _line([cell.text for cell in cells], columns, widths)
    if table.left_out:
        yield f"({table.left_out:,} more)"


def _widths(columns: list[Column], rows: list[list[Cell]]) -> list[int]:
    """Widths of the columns; if they are too wide, the widest text columns shrink first."""
    widths = [max(len(column.title), *(len(row[i].text) for row in rows)) for i, column in enumerate(columns)]
    room = _WIDTH - 2 * (len(columns) - 1)
    while sum(widths) > room:
        words = [i for i, column in enumerate(columns) if not column.number and widths[i] > _LEAST_NAME]
        if not words:
            break
        widest = max(words, key=lambda i: widths[i])
        widths[widest] -= min(widths[widest] - _LEAST_NAME, sum(widths) - room)
    return widths


def _line(texts: list[str], columns: list[Column], widths: list[int]) -> str:
    cells = []
    for words, column, width in zip(texts, columns, widths, strict=True):
        short = shortened(words, width)
        cells.append(f"{short:>{width}}" if column.number else f"{short:<{width}}")
    return "  ".join(cells)
