"""Plans of kind `place` as text: the OSTs that will store the stripes of new files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from vani.centre.plan.placement.layouts import PURPOSES
from vani.errors import one_line
from vani.render.table import listed, table
from vani.units import counted, format_bytes, format_share, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlacedFile, PlacePlan, Range

_RULES: Final = {
    "as-set": "Lustre, as configured",
    "going-on": "  in turn, continuing",
    "random-start": "  in turn, each file from a random OST",
    "by-space": "  at random by free space",
}
_OSTS: Final = 16


def place_body(plan: PlacePlan) -> list[str]:
    """The balance, and the place of each file."""
    return [
        _headline(plan),
        _pinning(plan),
        "",
        *table(("", "OST Cost", "OSS Cost", "time", "fullest OST"), list(_costs(plan))),
        "",
        *table(("file", "extent", "bytes", "stripe size", "OSTs"), list(_rows(plan.files)), left=1),
        *_sizes(plan),
        *_answers(plan),
    ]


def place_missing(plan: PlacePlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
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
        {(file.job, file.path) for file in plan.files if any(extent.is_left for extent in file.extents)}
    )
    files = counted(len(plan.files), "file")
    if left:
        files = f"{len(plan.files) - left:,} of {files}"
    text = f"{plan.place.method}: {files}, {format_bytes(added)} on {used:,} of {counted(len(plan.targets), 'OST')}"
    if plan.after.ost_cost is None or not added:
        return f"{text}."
    cost = f"{plan.after.ost_cost:.4g}"
    text += f": OST Cost {cost}"
    # The omitted part might have been the difficult one.
    if plan.least is None or left:
        return f"{text}."
    if plan.is_least:
        return f"{text}, the minimum possible."
    if f"{plan.least:.4g}" == cost:
        return f"{text}, less than 0.1 % above the minimum possible."
    return f"{text} (the minimum is {plan.least:.4g})."


def _pinning(plan: PlacePlan) -> str:
    return f"{'Worth pinning' if plan.pin else 'Better left to Lustre'}: {one_line(plan.pin_reason)}."


def _costs(plan: PlacePlan) -> Iterable[tuple[str, ...]]:
    if plan.now is not None:
        yield "now", _cost(plan.now.ost_cost), _cost(plan.now.oss_cost), "", format_share(plan.now.fullest)
    for figures in plan.allocator:
        yield _RULES[figures.rule], *map(_range, (figures.ost_cost, figures.oss_cost, figures.time_cost)), ""
    after = plan.after
    yield plan.place.method, *map(_cost, (after.ost_cost, after.oss_cost, after.time_cost)), format_share(after.fullest)


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
                f"{sum(extent.bytes) if extent.on_mdt is None else extent.on_mdt:,}",
                f"{extent.stripe_size:,}" if extent.on_mdt is None else "",
                osts or ("Lustre's choice" if extent.on_mdt is None else "metadata target"),
            )
            name = ""


def _sizes(plan: PlacePlan) -> Iterable[str]:
    """The purpose of each stripe size."""
    sizes = dict.fromkeys(
        (extent.set_stripe_size, extent.size_for)
        for file in plan.files
        for extent in file.extents
        if extent.on_mdt is None
    )
    if sizes:
        yield ""
        yield "Stripe sizes:"
        yield from listed([f"  {lfs_size(size)}: {PURPOSES[purpose]}" for size, purpose in sizes])


def _answers(plan: PlacePlan) -> Iterable[str]:
    if plan.answers:
        yield ""
        yield "Other answers (OST Cost, time):"
    for answer in plan.answers:
        figures = f" ({_range(answer.ost_cost)}, {_range(answer.time_cost)})" if answer.ost_cost else ""
        by = "" if answer.who == "user" else ", by an administrator"
        yield f"  {answer.name}{by}{figures}: {one_line(answer.why)}"
        yield from (f"    {one_line(line)}" for line in answer.lines)
