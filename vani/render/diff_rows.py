"""What text and Markdown show of a difference: the same rows in both."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.units import format_bytes, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.diff import Diff, Difference

__all__ = ["LISTED", "Row", "headline", "rows"]

LISTED: Final = 25
"""Rows that are shown without --all."""

_ALIKE: Final = 3


@dataclass(frozen=True)
class Row:
    """One difference, as text; nothing is escaped for any format yet but control characters."""

    attribute: str
    before: str
    after: str
    change: str
    status: str
    io_time: str
    matters: bool


def rows(diff: Diff, *, everything: bool) -> tuple[list[Row], str | None]:
    """The rows to show, and a sentence about those that are not; repetitions are shown with `everything` only."""
    chosen = diff.differences
    if not everything:
        chosen = [one for one in chosen if one.same_as is None and one.status != "within"]
        chosen, alike = _without_alike(chosen)
        some = chosen[:LISTED]
        rest = [name for name, count in (
            ("more", len(chosen) - len(some)),
            ("within the tolerance", diff.counts.within),
            ("repetitions", sum(one.same_as is not None for one in diff.differences)),
        ) if count for name in (f"{count:,} {name}",)]  # fmt: skip
        hidden = f"Not shown: {', '.join(rest)} (--all shows them)." if rest else None
        return [_row(one, alike.get(one.attribute, 0)) for one in some], hidden
    return [_row(one) for one in chosen], None


def _without_alike(chosen: list[Difference]) -> tuple[list[Difference], dict[str, int]]:
    """Of many entities of one list that are new (gone), only the first, and by its name how many more there are."""
    kinds = [
        (one.status, one.attribute.partition("[")[0]) if one.unit == "entity" else None for one in chosen
    ]
    often = Counter(kinds)
    kept: list[Difference] = []
    alike: dict[str, int] = {}
    seen = set()
    for one, kind in zip(chosen, kinds, strict=True):
        if kind is not None and often[kind] > _ALIKE:
            if kind in seen:
                continue
            seen.add(kind)
            alike[one.attribute] = often[kind] - 1
        kept.append(one)
    return kept, alike


def headline(diff: Diff) -> str:
    """One sentence: how much changed, and whether it matters."""
    counts = diff.counts
    if not diff.differences:
        return f"No difference in {counts.compared:,} attributes."
    found = Counter(
        {name: getattr(counts, name) for name in ("worse", "better", "changed", "new", "gone", "within")}
    )
    parts = ", ".join(f"{count:,} {name}" for name, count in found.items() if count)
    matter = {0: "none matters", 1: "1 matters"}.get(counts.matters, f"{counts.matters:,} matter")
    return f"Of {counts.compared:,} attributes: {parts}; {matter}."


def _row(one: Difference, alike: int = 0) -> Row:
    before, after = _shown(one, one.before), _shown(one, one.after)
    if before == after:
        before, after = str(one.before), str(one.after)
    return Row(
        attribute=one_line(one.attribute) + (f" and {alike:,} more" if alike else ""),
        before=before,
        after=after,
        change=_change(one),
        status=one.status,
        io_time="" if one.io_time_s is None else _io_time(one),
        matters=one.matters,
    )


def _io_time(one: Difference) -> str:
    seconds = format_seconds(one.io_time_s) if one.io_time_s else "0 s"
    return seconds if one.io_time_share is None else f"{seconds} ({format_share(one.io_time_share)})"


def _change(one: Difference) -> str:
    if one.change is None:
        return ""
    if one.change > 3:
        return f"x {one.change + 1:.3g}"
    return f"{one.change * 100:+.3g} %"


def _shown(one: Difference, value: float | str | bool | None) -> str:
    if one.unit == "entity":
        return "there" if value else "-"
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return one_line(value)
    if one.unit == "bytes":
        return format_bytes(value)
    if one.unit == "seconds":
        return format_seconds(value) if value else "0 s"
    if one.unit == "rate":
        return format_rate(value)
    if one.unit == "share":
        return format_share(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
