"""Phases of runs as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from vani.centre.prediction.behaviour.results import RunPhases

def run_phases(runs: Sequence[RunPhases]) -> str:
    """Write each run's behaviour and a row per phase."""
    lines: list[str] = []
    for run in runs:
        lines += [
            *([""] if lines else []),
            f"{one_line(run.path)}: behaviour {run.behaviour}, {counted(len(run.phases), 'phase')} "
            f"({run.source}, samples of {format_seconds(run.step_s)})",
        ]
        if run.phases:
            lines += table(
                ("phase", "begins at", "lasts", "read", "written"),
                [
                    (
                        str(phase.phase),
                        format_seconds(phase.begin_s),
                        format_seconds(phase.length_s),
                        f"{format_bytes(phase.read_per_s)}/s",
                        f"{format_bytes(phase.written_per_s)}/s",
                    )
                    for phase in run.phases
                ],
            )
    return "\n".join([*lines, ""])
