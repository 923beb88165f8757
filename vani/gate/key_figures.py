"""Key figures of a baseline: counts, bytes and times of the workflow and its apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vani.errors import one_line
from vani.gate.attribute import parse_attribute
from vani.gate.attribute_schema import resolve
from vani.gate.entity_names import Names
from vani.gate.matching import find, matches, number, trail_text
from vani.gate.profile_tree import Tree
from vani.gate.quantity import Dimension, shown
from vani.gate.tolerance import allowed

_SHOWN: Final = (
    "workflow.processes",
    "workflow.runtime_s",
    "workflow.files.total",
    "workflow.io.bytes.read",
    "workflow.io.bytes.written",
    "workflow.io.ops.*",
    "workflow.io.time_s.total",
    "apps[*].io.bytes.read",
    "apps[*].io.bytes.written",
    "apps[*].io.ops.*",
    "apps[*].io.time_s.total",
)


def key_figures(runs: Sequence[Tree]) -> list[tuple[str, str]]:
    """Attributes and their values as text: one value, or the median with the minimum and maximum."""
    names = Names()
    rows: dict[str, str] = {}
    lone = all(len(_apps(run)) == 1 for run in runs)
    for text in _SHOWN:
        if lone and text.startswith("apps"):
            continue
        for leaf in resolve(parse_attribute(text))[1]:
            for run in runs:
                for match in matches(leaf, run, names, "baseline"):
                    name = one_line(trail_text(match.trail))
                    if name not in rows:
                        values = [find(match.trail, run, names)[1] for run in runs]
                        rows[name] = _spread(values, leaf.dimension)
    files = [len(run["files"]) for run in runs if isinstance(run.get("files"), list)]
    rows["remaining files"] = _spread(files, "count")
    return list(rows.items())


def _apps(run: Mapping[str, Any]) -> Sequence[Any]:
    apps = run.get("apps")
    return apps if isinstance(apps, list) else ()


def _spread(values: Sequence[Any], dimension: Dimension) -> str:
    known = [value for value in map(number, values) if value is not None]
    if not known:
        return "unknown"
    if min(known) == max(known):
        return shown(known[0], dimension)
    middle = allowed(known, relative=0, absolute=0).center
    return f"{shown(middle, dimension)} ({shown(min(known), dimension)} to {shown(max(known), dimension)})"
