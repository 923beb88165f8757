"""Plans as text for people and for other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vani.centre.plan.text.io_nodes import (
    forward_body,
    forward_missing,
    job_body,
    job_missing,
    replay_body,
    replay_missing,
)
from vani.centre.plan.text.paths import path_body, path_missing
from vani.centre.plan.text.place import place_body, place_missing
from vani.centre.plan.text.simulate import simulate_body, simulate_missing
from vani.render.formats import Formats

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import Plan

_DOCUMENTS: Final = {"text": (".txt",), "yaml": (".yaml", ".yml"), "json": (".json",)}
_WHOLE: Final = ("json", "yaml")

FORMATS: Final[Formats[str]] = Formats.in_folder(__name__, _DOCUMENTS, whole=_WHOLE)

PATH_FORMATS: Final[Formats[str]] = Formats.in_folder(
    __name__, {**_DOCUMENTS, "map": (".map",), "gekkofwd": ()}, whole=_WHOLE
)
"""Formats of path plans, including the forwarding node of each compute node."""

PLACE_FORMATS: Final[Formats[str]] = Formats.in_folder(__name__, {**_DOCUMENTS, "script": (".sh",)}, whole=_WHOLE)
"""Formats of OST plans, including the commands that apply them."""

KINDS: Final[Mapping[str, tuple[Callable[[Any], list[str]], Callable[[Any], list[str]]]]] = {
    "forward": (forward_body, forward_missing),
    "replay": (replay_body, replay_missing),
    "job": (job_body, job_missing),
    "path": (path_body, path_missing),
    "place": (place_body, place_missing),
    "simulate": (simulate_body, simulate_missing),
}
"""For each kind of plan its lines, and what it leaves out, as parts of a sentence."""


def left_out(plan: Plan) -> str | None:
    """The first line of a plan that leaves something out; None for a complete plan."""
    parts = KINDS[plan.kind][1](plan)
    return f"Incomplete: {', '.join(parts)}." if parts else None
