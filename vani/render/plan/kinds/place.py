"""Plans of kind `place`: which OSTs the stripes of files to come lie on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.schema.plan import PlacedFile, PlacePlan, Range

__all__ = ["body", "missing"]

_RULES: Final = {
    "as-set": "Lustre, as set",
    "going-on": "  in turn, going on",
    "random-start": "  in turn, each file from a random OST",
    "by-space": "  at random by free space",
}
_OSTS: Final = 16


def body(plan: PlacePlan) -> list[str]:
    """How even it is, and which file lies where."""
    return [
        _headline(plan),
        _pinning(plan),
        "",
        *table(("", "OST Cost", "OSS Cost", "fullest OST"), list(_costs(plan))),
        "",
        *table(("file", "extent", "bytes", "stripe size", "OSTs"), list(_rows(plan.files)), left=1),
    ]


def missing(plan: PlacePlan) -> list[str]:
    """The parts that the plan leaves out, as parts of a sentence."""
    parts = []
    if plan.unplaced:
        parts.append(f"{counted(len(plan.unplaced), 'extent')} left to Lustre")
    if plan.over_capacity:
        parts.append(f"{counted(len(plan.over_capacity), 'OST')} above the ceiling")
    if plan.no_data:
        parts.append(f"{counted(len(plan.no_data), 'figure')} missing")
    return parts


def _headline(plan: PlacePlan) -> str:
    used = sum(target.added > 0 for target in plan.targets)
    added = sum(target.added for target in plan.targets)
    left = len(
        {(file.job, file.path) for file in plan.files if not all(extent.osts for extent in file.extents)}
    )
    files = counted(len(plan.files), "file")
    if left:
        files = f"{len(plan.files) - left:,} of {files}"
    text = f"{plan.place.method}: {files}, {format_bytes(added)} on {used:,} of {counted(len(plan.targets), 'OST')}"
    if plan.after.ost_cost is None or not added:
        return f"{text}."
    cost = f"{plan.after.ost_cost:.4g}"
    text += f": OST Cost {cost}"
    # What is left out would have been the hard part.
    if plan.least is None or left:
        return f"{text}."
    if plan.is_least:
        return f"{text}, the least possible."
    if f"{plan.least:.4g}" == cost:
        return f"{text}, less than 0.1 % above the least possible."
    return f"{text} (no placement comes below {plan.least:.4g})."


def _pinning(plan: PlacePlan) -> str:
    return f"{'Worth pinning' if plan.pin else 'Better left to Lustre'}: {one_line(plan.pin_reason)}."


def _costs(plan: PlacePlan) -> Iterable[tuple[str, ...]]:
    if plan.now is not None:
        yield "now", *_three(plan.now.ost_cost, plan.now.oss_cost, plan.now.fullest)
    for figures in plan.allocator:
        yield _RULES[figures.rule], _range(figures.ost_cost), _range(figures.oss_cost), ""
    yield plan.place.method, *_three(plan.after.ost_cost, plan.after.oss_cost, plan.after.fullest)


def _three(ost: float | None, oss: float | None, fullest: float) -> tuple[str, str, str]:
    return _cost(ost), _cost(oss), format_share(fullest)


def _cost(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _range(bounds: Range | None) -> str:
    if bounds is None:
        return "unknown"
    if f"{bounds.low:.3f}" == f"{bounds.high:.3f}":
        return f"{bounds.median:.3f}"
    return f"{bounds.median:.3f} ({bounds.low:.3f} to {bounds.high:.3f})"


def _rows(files: Sequence[PlacedFile]) -> Iterable[tuple[str, ...]]:
    for file in files:
        name = one_line(file.path)
        for extent in file.extents:
            osts = " ".join(map(str, extent.osts[:_OSTS])) + (" ..." if len(extent.osts) > _OSTS else "")
            yield (
                name,
                str(extent.number),
                f"{sum(extent.bytes):,}",
                f"{extent.stripe_size:,}",
                osts or "Lustre's choice",
            )
            name = ""
