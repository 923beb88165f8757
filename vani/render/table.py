"""Tables in columns, in Markdown and as CSV, and the short documents: runs, rules, settings, graphs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, get_args

from vani.errors import one_line
from vani.schema.syntax.json_text import json_text
from vani.site import KEYS, Setting
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.diff import RunRow, RunTable

MAX_LISTED: Final = 100
"""Maximum number of rows and reasons to show; the document has all."""


def table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    left: int | Collection[int] = 1,
    all_rows: bool = False,
) -> list[str]:
    """Lay out the first rows, or all, in columns: the first `left`, or these, left-aligned, others right-aligned."""
    aligned_left = range(left) if isinstance(left, int) else left
    cells = list(chain([head], rows if all_rows else islice(rows, MAX_LISTED)))
    wide = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in aligned_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in cells
    ]
    return lines if all_rows else [*lines, *_more(rows)]


def listed(lines: Sequence[str]) -> Iterable[str]:
    """The first lines, and the number of further ones."""
    return [*lines[:MAX_LISTED], *_more(lines)]


def _more(some: Sequence[object]) -> list[str]:
    return [f"... and {len(some) - MAX_LISTED:,} more (--format yaml has all)"] if len(some) > MAX_LISTED else []


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Lines of a table in Markdown, whose cells are escaped already; columns at `right` are right-aligned."""
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    titles = "|".join(f" {title} " if title else " " for title in head)
    return [f"|{titles}|", *(f"| {' | '.join(row)} |" for row in (rule, *rows))]


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!@:$])", r"\\\1", one_line(text)) if text else ""


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span, with a fence longer than any run of backticks in the text."""
    text = one_line(text)
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    span = f"{fence}{pad}{text}{pad}{fence}"
    return span.replace("|", "\\|") if in_table else span


def fenced(lines: Sequence[str]) -> list[str]:
    """Shell lines as a code block that none of them can end."""
    text = [one_line(line) for line in lines]
    fence = _fence("\n".join(text), 3)
    return [f"{fence}sh", *text, fence]


def _fence(text: str, least: int) -> str:
    return "`" * max(least, *(len(run) + 1 for run in re.findall(r"`+", text)), 0)


def csv_table(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV for spreadsheets; see `cell`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def cell(value: object) -> str:
    """A single-line cell of CSV; empty if the value is unknown."""
    if value is None:
        return ""
    if isinstance(value, float):
        # A time in seconds since 1970 has ten digits.
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"
    text = one_line(str(value))
    # Otherwise a spreadsheet would take it for a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# --- runs -------------------------------------------------------------------------------------------


def runs_to_text(document: RunTable, **_: object) -> str:
    """Write the most important columns, a line per run; names from traces cannot add lines."""
    columns = ("run", "processes", "run time", "matters", "I/O", "read", "written", "write rate", "metadata", "files")
    lines = table((*columns, "costliest"), [_run(row) for row in document.rows], all_rows=True)
    if any(row.damage is not None for row in document.rows):
        lines += ["", "* damaged: figures are too small"]
    return "\n".join(lines) + "\n"


def _run(row: RunRow) -> tuple[str, ...]:
    def shown(value: object, text: str) -> str:
        return "-" if value is None else text

    return (
        one_line(row.run) + (" *" if row.damage is not None else ""),
        format_count(row.processes),
        shown(row.runtime_s, format_seconds(row.runtime_s)),
        (row.matters or "-").replace("_", " "),
        shown(row.io_share, ("> " if row.io_share_is_lower_bound else "") + format_share(row.io_share)),
        shown(row.read, format_bytes(row.read)),
        shown(row.written, format_bytes(row.written)),
        shown(row.write_rate, format_rate(row.write_rate)),
        shown(row.metadata, format_count(row.metadata)),
        shown(row.files, format_count(row.files)),
        one_line(row.costliest or "-"),
    )


def runs_to_csv(document: RunTable, **_: object) -> str:
    """Write all columns; figures are exact, and unknown ones are empty."""
    from vani.schema.diff import COLUMNS  # noqa: PLC0415 - a list of rules loads no pydantic

    return csv_table([COLUMNS, *([cell(getattr(row, name)) for name in COLUMNS] for row in document.rows)])


def runs_to_parquet(document: RunTable, **_: object) -> bytes:
    """Write one row group for pandas, DuckDB and others, with columns typed as in the schema."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and other formats do not need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    from vani.schema.diff import RunRow  # noqa: PLC0415 - as above

    types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    fields = [
        pa.field(
            name,
            types[next(kind for kind in (*get_args(field.annotation), field.annotation) if kind in types)],
        )
        for name, field in RunRow.model_fields.items()
    ]
    sink = pa.BufferOutputStream()
    rows = [row.model_dump() for row in document.rows]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


# --- rules and settings -----------------------------------------------------------------------------


def rules_to_text(rules: Sequence[Mapping[str, Any]], **_: object) -> str:
    """Write the finding of each rule; thresholds are left to the JSON format."""
    wide = {key: max((len(rule[key]) for rule in rules), default=0) for key in ("name", "family")}
    lines = (
        f"{rule['id']}  {rule['name'].ljust(wide['name'])}  {rule['family'].ljust(wide['family'])}  {rule['finding']}\n"
        for rule in rules
    )
    return "".join(lines)


def rules_to_json(rules: Sequence[Mapping[str, Any]], **_: object) -> str:
    """Write everything that is known about the rules."""
    return json_text(rules)


def settings_text(
    settings: Sequence[Setting],
    thresholds: Mapping[str, Mapping[str, Any]],
    origins: Mapping[tuple[str, str], str],
    *,
    kind: str = "text",
) -> str:
    """Write the settings of the user and the centre with their origins, in columns or as JSON."""
    rows = [(setting.key, setting.value, setting.origin) for setting in settings]
    rows += [
        (f"thresholds.{rule}.{name}", str(value), origins[rule, name])
        for rule, values in sorted(thresholds.items())
        for name, value in values.items()
    ]
    if kind == "json":
        return json_text([{"setting": key, "value": value, "set_by": origin} for key, value, origin in rows])
    lines = table(
        ("setting", "value", "set by"),
        [(one_line(key), one_line(value or "-"), one_line(origin)) for key, value, origin in rows],
        left=3,
        all_rows=True,
    )
    about = [f"  {key:<14} {what}" for key, what in KEYS.items()]
    more = ["", "In a file of settings (TOML):", *about, "  [thresholds.RULE]  as in vani.toml"]
    return "\n".join([*lines, *more]) + "\n"


# --- dependency graph -------------------------------------------------------------------------------


def graph_to_dot(graph: Any, **_: object) -> str:
    """Write a networkx.DiGraph for Graphviz; edges with known files but unknown bytes are dashed."""
    lines = ["digraph vani {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for a, b, data in graph.edges(data=True):
        label = ", ".join(f"{key}={'unknown' if value is None else value}" for key, value in data.items())
        # Dependencies that no byte ranges prove are drawn lighter.
        style = ", style=dashed" if data.get("files_by_extents") == 0 else ""
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'


def graph_to_json(graph: Any, **_: object) -> str:
    """Write a networkx.DiGraph as JSON."""
    document = {
        "directed": True,
        "nodes": [{"id": node} for node in graph.nodes],
        "edges": [{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)],
    }
    return json_text(document, indent=1, ascii_only=True, allow_nan=True)
