"""Plans of kind `place` as text, and as a bash script that shows, applies and undoes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from vani.centre.plan.placement.layouts import PURPOSES
from vani.errors import InputError, one_line
from vani.render.table import listed, table
from vani.units import counted, format_bytes, format_share, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlacedFile, PlacePlan, Plan, Range

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
        one_line(_pinning(plan)),
        "",
        *table(("", "OST Cost", "OSS Cost", "time", "fullest OST"), list(_costs(plan))),
        "",
        *table(("file", "extent", "bytes", "stripe size", "OSTs"), list(_rows(plan.files)), left=1),
        *_sizes(plan),
        *_answers(plan),
    ]


def place_missing(plan: PlacePlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    omitted = (
        (plan.unplaced, "extent", "left to Lustre"), (plan.over_capacity, "OST", "above the ceiling"),
        (plan.no_data, "figure", "missing"),
    )  # fmt: skip
    return [f"{counted(len(some), noun)} {what}" for some, noun, what in omitted if some]


def _headline(plan: PlacePlan) -> str:
    used = sum(target.added > 0 for target in plan.targets)
    added = sum(target.added for target in plan.targets)
    left = len({(file.job, file.path) for file in plan.files if any(extent.is_left for extent in file.extents)})
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
    return f"{'Worth pinning' if plan.pin else 'Better left to Lustre'}: {plan.pin_reason}."


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


def _sizes(plan: PlacePlan) -> list[str]:
    """The purpose of each stripe size."""
    extents = [extent for file in plan.files for extent in file.extents if extent.on_mdt is None]
    sizes = dict.fromkeys((extent.set_stripe_size, extent.size_for) for extent in extents)
    rows = [f"  {lfs_size(size)}: {PURPOSES[purpose]}" for size, purpose in sizes]
    return ["", "Stripe sizes:", *listed(rows)] if rows else []


def _answers(plan: PlacePlan) -> Iterable[str]:
    if plan.answers:
        yield ""
        yield "Other answers (OST Cost, time):"
    for answer in plan.answers:
        figures = f" ({_range(answer.ost_cost)}, {_range(answer.time_cost)})" if answer.ost_cost else ""
        by = "" if answer.who == "user" else ", by an administrator"
        yield f"  {answer.name}{by}{figures}: {one_line(answer.why)}"
        yield from (f"    {one_line(line)}" for line in answer.lines)


# The script. Paths come from a document that anyone may have written, so each is one quoted word, and comments contain
# no line ends.

TEMPLATE: Final = Path(__file__).with_name("place.sh")
"""The script of a placement; VERSION and COMMENTS are replaced, and a line for each file follows."""


def place_to_script(plan: Plan) -> str:
    """Write the script.

    Raises
    ------
    InputError
        The plan is of a kind that a script cannot carry out.
    """
    if plan.kind != "place":
        what = f"a plan of kind {plan.kind!r} cannot be written as a script"
        raise InputError(what, where="--format", todo="take text, yaml or json")
    return "\n".join(_lines(cast("PlacePlan", plan))) + "\n"


def _lines(plan: PlacePlan) -> Iterator[str]:
    head, functions = TEMPLATE.read_text().split("# COMMENTS\n")
    yield head.replace("VERSION", one_line(plan.version)).rstrip()
    for source in plan.inputs:
        yield _comment(f"  from {source.kind} {source.path or 'given in memory'}, SHA-256 {source.sha256}")
    if parts := place_missing(plan):
        yield _comment(f"Incomplete: {', '.join(parts)}.")
    yield _comment(_pinning(plan))
    sizes = dict.fromkeys(
        (extent.set_stripe_size, extent.size_for) for file in plan.files for extent in file.extents if extent.osts
    )
    yield from (_comment(f"Stripes of {lfs_size(size)}: {PURPOSES[purpose]}.") for size, purpose in sizes)
    yield from (_comment(f"Note: {note}.") for note in plan.notes)
    for answer in plan.answers:
        yield _comment(f"Another answer ({answer.who}): {answer.name}. {answer.why}.")
        yield from (_comment(f"  {line}") for line in answer.lines)
    yield functions.rstrip()
    for number, file in enumerate(plan.files, start=1):
        if file.command is None:
            yield _comment(f"Lustre chooses: {file.path}")
            continue
        words = shlex.split(file.command)
        yield " ".join(["place", str(number), *map(shlex.quote, words)])


def _comment(text: str) -> str:
    return f"# {one_line(text)}"
