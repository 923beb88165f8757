"""Which run advice is for that was given before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import counted, format_share

if TYPE_CHECKING:
    from vani.schema.advice import NextRun

__all__ = ["before_run"]


def before_run(run: NextRun) -> Iterator[str]:
    """Whose run, how it is likely to behave, and that nothing is to be changed where too little is known."""
    whose = f" by {one_line(run.user)}" if run.user is not None else ""
    on = f" on {counted(run.processes, 'process')}" if run.processes is not None else ""
    yield f"For the next run of {one_line(run.application)}{whose}{on}."
    for behaviour in run.behaviours:
        like = (
            f"like {one_line(behaviour.run)}" if behaviour.run is not None else "of which no profile is there"
        )
        yield f"  {format_share(behaviour.probability)}: behaviour {behaviour.behaviour}, {like}"
    if run.default is not None:
        yield f"Leave the defaults as they are: {one_line(run.default)}."
