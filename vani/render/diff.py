"""Changes between two runs as text, Markdown and JSON."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vani.errors import one_line
from vani.render.table import code, markdown_table
from vani.schema.diff import KEY_FIGURES, SLOWEST_CALLS, Diff, Difference
from vani.schema.syntax.json_text import json_text
from vani.units import format_number, format_seconds, format_share, format_value

MAX_LISTED: Final = 20
"""Number of rows shown without --all."""

_MAX_ALIKE: Final = 3
# Sizes have several quantiles, which usually change together.
_QUANTILES: Final = re.compile(r"(.*\.(?:transfer_size\.(?:read|write)|size_distribution))\.(min|p50|p90|max)")
_ORDER: Final = ("min", "p50", "p90", "max")
_LITTLE: Final = 0.01
"""Share of the run time below which `vani advise` considers a change not worthwhile."""


@dataclass(frozen=True)
class Row:
    """One difference as text; only control characters are escaped so far."""

    attribute: str
    before: str
    after: str
    change: str
    status: str
    io_time: str
    matters: bool


def rows(diff: Diff, *, everything: bool) -> tuple[list[Row], str | None]:
    """The rows to show, and a sentence about the others; repetitions are shown only with `everything`."""
    chosen = diff.differences
    if not everything:
        chosen = [
            difference
            for difference in chosen
            if difference.same_as is None and difference.status not in ("within", "unknown")
        ]
        chosen, alike = _without_alike(chosen)
        chosen, others = _without_quantiles(chosen)
        some = chosen[:MAX_LISTED]
        rest = [name for name, count in (
            ("more", len(chosen) - len(some)),
            ("within the tolerance", diff.counts.within),
            ("known in one only", diff.counts.unknown),
            ("repetitions", sum(difference.same_as is not None for difference in diff.differences)),
        ) if count for name in (f"{count:,} {name}",)]  # fmt: skip
        hidden = f"Not shown: {', '.join(rest)} (--all shows them)." if rest else None
        shown = [
            _row(difference, alike.get(difference.attribute, 0), others.get(difference.attribute, ()))
            for difference in some
        ]
        return shown, hidden
    return [_row(difference) for difference in chosen], None


def _without_alike(chosen: list[Difference]) -> tuple[list[Difference], dict[str, int]]:
    """The first of many new (or vanished) entities of one list, and by its name the number of others."""
    kinds = [
        (difference.status, difference.attribute.partition("[")[0]) if difference.unit == "entity" else None
        for difference in chosen
    ]
    often = Counter(kinds)
    shown: list[Difference] = []
    alike: dict[str, int] = {}
    seen = set()
    for difference, kind in zip(chosen, kinds, strict=True):
        if kind is not None and often[kind] > _MAX_ALIKE:
            if kind in seen:
                continue
            seen.add(kind)
            alike[difference.attribute] = often[kind] - 1
        shown.append(difference)
    return shown, alike


def _without_quantiles(chosen: list[Difference]) -> tuple[list[Difference], dict[str, list[str]]]:
    """The median, or the first, of quantiles that change in the same direction, and by its name the others."""
    groups: dict[tuple[str, str, bool], list[Difference]] = {}
    for difference in chosen:
        if (match := _QUANTILES.fullmatch(difference.attribute)) is not None:
            groups.setdefault((match[1], difference.status, difference.matters), []).append(difference)
    others: dict[str, list[str]] = {}
    dropped = set()
    for group in groups.values():
        median = next((difference for difference in group if difference.attribute.endswith(".p50")), group[0])
        rest = [difference.attribute for difference in group if difference is not median]
        others[median.attribute] = sorted((name.rpartition(".")[2] for name in rest), key=_ORDER.index)
        dropped.update(rest)
    return [difference for difference in chosen if difference.attribute not in dropped], others


def figures(diff: Diff) -> list[tuple[str, str, str, str]]:
    """The run in a few lines of figure, A, B and change; figures that neither run has are left out."""
    return [
        (
            KEY_FIGURES.get(figure.attribute, ("", figure.attribute))[1],
            _value(figure.before, figure.unit),
            _value(figure.after, figure.unit),
            _change(figure.change),
        )
        for figure in diff.figures
        if figure.before is not None or figure.after is not None
    ]


def weight(diff: Diff) -> str | None:
    """A sentence if I/O takes too little of the run time for a change to matter; otherwise None.

    None also if only the time in file-system calls is known, since a run may wait in its libraries.
    """
    shares: list[float] = []
    for side in ("before", "after"):
        known = {figure.attribute: getattr(figure, side) for figure in diff.figures}
        called = known.get(SLOWEST_CALLS)
        runtime, share, slowest = (
            known.get(f"workflow.{name}") for name in ("runtime_s", "io_time_share", "io_time_share_slowest")
        )
        if not runtime or called is None or share is None:
            return None
        shares += [called / runtime, share, slowest or 0.0]
    if max(shares) >= _LITTLE:
        return None
    return (
        f"I/O calls, including libraries, take at most {format_share(max(shares))} of the "
        "run time: they hardly matter."
    )


def headline(diff: Diff) -> str:
    """One sentence about how much changed, and whether it matters."""
    counts = diff.counts
    if not diff.differences:
        return f"No difference in {counts.compared:,} attributes."
    by_status = Counter(
        {name: getattr(counts, name) for name in ("worse", "better", "changed", "new", "gone", "within")}
    )
    by_status["known in one only"] = counts.unknown
    parts = ", ".join(f"{count:,} {name}" for name, count in by_status.items() if count)
    matter = {0: "none matters", 1: "1 matters"}.get(counts.matters, f"{counts.matters:,} matter")
    return f"{counts.compared:,} attributes: {parts}; {matter}."


def _row(difference: Difference, alike: int = 0, others: Sequence[str] = ()) -> Row:
    before, after = _shown(difference, difference.before), _shown(difference, difference.after)
    if before == after:
        before, after = str(difference.before), str(difference.after)
    return Row(
        attribute=one_line(difference.attribute)
        + (f" and {alike:,} more" if alike else "")
        + (f" (and {', '.join(others)})" if others else ""),
        before=before,
        after=after,
        change=_change(difference.change),
        status=difference.status,
        io_time="" if difference.io_time_s is None else _io_time(difference),
        matters=difference.matters,
    )


def _io_time(difference: Difference) -> str:
    share = "" if difference.io_time_share is None else f" ({format_share(difference.io_time_share)})"
    return format_seconds(difference.io_time_s) + share


def _change(change: float | None) -> str:
    if not change:
        return ""
    return f"x {format_number(change + 1)}" if change > 3 else f"{change * 100:+.3g} %"


def _shown(difference: Difference, value: float | str | bool | None) -> str:
    if difference.unit == "entity":
        return "there" if value else "-"
    return _value(value, difference.unit)


def _value(value: float | str | bool | None, unit: str) -> str:
    return format_value(one_line(value) if isinstance(value, str) else value, unit)


def to_text(diff: Diff, *, everything: bool = False) -> str:
    """Write the most important differences, or all of them; `*` marks those that matter."""
    shown, hidden = rows(diff, everything=everything)
    lines = [f"A  {one_line(diff.a.path)}", f"B  {one_line(diff.b.path)}", "", *_table(diff), ""]
    if (sentence := weight(diff)) is not None:
        lines.append(sentence)
    lines.append(headline(diff))
    wide = max((len(row.status) for row in shown), default=0)
    for row in shown:
        lines += ["", *_lines(row, wide)]
    if hidden:
        lines += ["", hidden]
    return "\n".join(lines) + "\n"


def _table(diff: Diff) -> list[str]:
    table = [("", "A", "B", ""), *figures(diff)]
    wide = [max(len(row[column]) for row in table) for column in range(3)]
    return [
        f"{name.ljust(wide[0])}  {before.rjust(wide[1])}  {after.rjust(wide[2])}  {change}".rstrip()
        for name, before, after, change in table
    ]


def _lines(row: Row, wide: int) -> list[str]:
    change = f"  {row.change}" if row.change else ""
    time = f"  I/O time {row.io_time}" if row.io_time else ""
    mark = "*" if row.matters else " "
    values = f"{row.before} -> {row.after}{change}{time}"
    return [f"{mark} {row.status.ljust(wide)}  {row.attribute}", f"  {' ' * wide}  {values}"]


def to_markdown(diff: Diff, *, everything: bool = False) -> str:
    """Write a table; text from traces is in code spans, so that it cannot be markup or a link."""
    shown, hidden = rows(diff, everything=everything)
    lines = [
        "# I/O of two runs",
        "",
        f"A: {code(diff.a.path)}  ",
        f"B: {code(diff.b.path)}",
        "",
        *markdown_table(("", "A", "B", "change"), figures(diff), right=(1, 2, 3)),
        "",
        *([sentence, ""] if (sentence := weight(diff)) is not None else []),
        headline(diff),
    ]
    if shown:
        cells = [
            (
                f"**{row.status}**" if row.matters else row.status,
                *(code(text, in_table=True) for text in (row.attribute, row.before, row.after)),
                row.change,
                row.io_time,
            )
            for row in shown
        ]
        head = ("", "attribute", "A", "B", "change", "I/O time")
        lines += ["", *markdown_table(head, cells, right=(2, 3, 4, 5))]
    if hidden:
        lines += ["", hidden]
    return "\n".join(lines) + "\n"


def to_json(diff: Diff, *, everything: bool = False) -> str:
    """Write all differences, or those that exceed the tolerance."""
    tree = diff.model_dump(by_alias=True)
    if not everything:
        tree["differences"] = [difference for difference in tree["differences"] if difference["status"] != "within"]
    return json_text(tree)
