"""The part of an app's writing that can happen while it computes.

A phase i writes for w_i seconds; after it, g_i seconds pass without I/O until the next phase begins (or the
app ends), and within it, pauses of p_i seconds in which no process does I/O (counted only where no library
exchanges data between the file-system calls: such pauses are its own). A program that reads back what it wrote must
have written it by then, so a pause before reading hides nothing, nor does one between calls of the same phase. Of
the pauses, l seconds are those that the slowest process spends in libraries outside file-system calls, which is I/O,
too. Written in the background,

    hidden = min(sum over i of min(w_i, g_i + p_i), sum over i of (g_i + p_i) - l)

leaves the critical path: a buffer must be free before the next phase fills it. What remains is a copy of the
bytes in memory, v_i / c with c bytes per second for each process that takes part. Phases that the profile has in one
row are taken as equally long and evenly spaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.models.run_time import seconds
from vani.models.small_io import COPY_RATE

if TYPE_CHECKING:
    from vani.schema.profile import Phase

__all__ = ["Overlap", "overlap"]


@dataclass(frozen=True)
class Overlap:
    """Seconds of writing, of these what computing could hide, what copying costs, of pauses, and in how many phases.

    `largest` is the bytes that one process must hold at most, on average over its phase's processes.
    """

    writing_s: float
    hidden_s: float
    copying_s: float
    pauses_s: float
    phases: int
    largest: int


def overlap(
    phases: Sequence[Phase],
    end_s: float,
    *,
    inside: bool,
    share: float = 1.0,
    reads_back: bool = False,
    library_s: float = 0.0,
) -> Overlap:
    """Look at the phases of one app.

    `end_s` is when it ends, `inside` whether pauses within phases count, `share` what a second in which any
    process writes costs the run, `reads_back` whether the app reads what it wrote, and `library_s` the l of the module.
    """
    writing = hidden = copying = pauses = 0.0
    count = largest = 0
    spans = sorted((span, place) for place, phase in enumerate(phases) for span in phase.spans)
    for number, ((start, end), place) in enumerate(spans):
        phase = phases[place]
        if phase.kind not in ("write", "mixed") or not phase.io.busy_s.write:
            continue
        busy = phase.io.busy_s.write / phase.count
        last = number + 1 == len(spans)
        until = end_s if last else spans[number + 1][0][0]
        is_read_next = not last and phases[spans[number + 1][1]].kind in ("read", "mixed")
        idle = 0.0 if reads_back and is_read_next else max(0.0, until - end)
        if inside and not reads_back:
            idle += max(0.0, end - start - seconds(phase.io.busy_s.total) / phase.count)
        of_process = (phase.io.bytes.written or 0) / phase.count / max(1, phase.processes)
        busy *= share
        pauses += idle
        writing += busy
        hidden += min(busy, idle)
        copying += min(busy, of_process / COPY_RATE)
        count += min(busy, idle) > 0
        largest = max(largest, round(of_process))
    pauses = max(0.0, pauses - library_s)
    return Overlap(writing, min(hidden, pauses), copying, pauses, count, largest)
