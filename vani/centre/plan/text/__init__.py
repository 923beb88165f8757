"""Plans as text for people and for other programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from vani.centre.plan.schema.plans import Left, Plan
from vani.centre.plan.text.io_nodes import forward_body, forward_missing, replay_body, replay_missing
from vani.centre.plan.text.paths import path_body, path_missing
from vani.centre.plan.text.place import place_body, place_missing
from vani.centre.plan.text.simulate import drawn as drawn
from vani.centre.plan.text.simulate import simulate_body, simulate_missing
from vani.errors import one_line
from vani.render.formats import Formats
from vani.render.table import listed

_WRITERS: Final = {"text": f"{__name__}:plan_to_text", "yaml": None, "json": None}
_SUFFIXES: Final = {"text": (".txt",), "yaml": (".yaml", ".yml")}

FORMATS: Final[Formats[str]] = Formats(_WRITERS, _SUFFIXES)
PATH_FORMATS: Final[Formats[str]] = Formats(
    {**_WRITERS, "map": f"{__name__}.paths:path_to_map", "gekkofwd": f"{__name__}.paths:path_to_gekkofwd"},
    {**_SUFFIXES, "gekkofwd": ()},
)
"""Formats of path plans, including the forwarding node of each compute node."""
PLACE_FORMATS: Final[Formats[str]] = Formats(
    {**_WRITERS, "script": f"{__name__}.place:place_to_script"}, {**_SUFFIXES, "script": (".sh",)}
)
"""Formats of OST plans, including the commands that apply them."""

_KINDS: Final[Mapping[str, tuple[Callable[[Any], list[str]], Callable[[Any], list[str]]]]] = {
    "forward": (forward_body, forward_missing),
    "replay": (replay_body, replay_missing),
    "path": (path_body, path_missing),
    "place": (place_body, place_missing),
    "simulate": (simulate_body, simulate_missing),
}
"""For each kind of plan its lines, and what it leaves out, as parts of a sentence."""


def left_out(plan: Plan) -> str | None:
    """The first line of a plan that leaves something out; None for a complete plan."""
    parts = _KINDS[plan.kind][1](plan)
    return f"Incomplete: {', '.join(parts)}." if parts else None


def plan_to_text(plan: Plan) -> str:
    """Write the plan; the first line states its omissions."""
    first = left_out(plan)
    return "\n".join(
        [
            *([first, ""] if first else []),
            *_KINDS[plan.kind][0](plan),
            *reasons(("Unplaced", plan.unplaced), ("Over capacity", plan.over_capacity), ("No data", plan.no_data)),
            *(line for note in plan.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def reasons(*titled: tuple[str, Sequence[Left]]) -> Iterator[str]:
    """A list for each title that has entries."""
    for title, some in titled:
        if some:
            yield ""
            yield f"{title}:"
            yield from listed([f"  {one_line(left.name)}: {one_line(left.reason)}" for left in some])
