"""The part of an app's writing (or reading) that can happen while it computes.

A phase i writes for w_i seconds; after it, g_i seconds pass without I/O until the next phase begins (or the app
ends), and within it, pauses of p_i seconds in which no process does I/O. These are counted only where no library
exchanges data between the file-system calls: such pauses are its own. And only where they are a millisecond a call or
more: less is the program's time between calls, and the tracer's. A program that reads back what it
wrote must have written it by then, so a pause before reading hides nothing, nor does one between calls of the same
phase. Of the pauses, l seconds are those that the slowest process spends in libraries outside file-system calls, which
is I/O, too. Written in the background,

    hidden = min(sum over i of min(w_i, g_i + p_i), sum over i of (g_i + p_i) - l)

leaves the critical path: a buffer must be free before the next phase fills it. What remains is a copy of the
bytes in memory, v_i / c with c bytes per second for each process that takes part. Phases that the profile has in one
row are taken as equally long and evenly spaced.

Reading is the same with g_i before the phase: the next input is read while the program computes on the last one. The
first phase has none before it. Phases with less than a hundredth of the bytes that are read are left out: a program
loads modules and settings before its first input. In phases that only read, opening is done ahead, too, and w_i is all
I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.models.run_time import seconds
from vani.models.small_io import COPY_RATE

if TYPE_CHECKING:
    from vani.schema.profile import Phase

__all__ = ["Overlap", "overlap"]

_LEAST_PART: Final = 0.01
"""Least share of the bytes read, see the module."""
_LEAST_PAUSE_S: Final = 1e-3
"""Ours: twenty times what strace takes for a call, and what passing a buffer to a thread and back does."""


@dataclass(frozen=True)
class Overlap:
    """Seconds of moving data, what computing could hide of them, what copying that costs, seconds of pauses; phases.

    `largest` is the bytes that one process must keep at most, on average over its phase's processes.
    """

    moving_s: float
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
    reads: bool = False,
    share: float = 1.0,
    reads_back: bool = False,
    library_s: float = 0.0,
) -> Overlap:
    """Look at the phases of one app: at its writing, or with `reads` at its reading.

    `end_s` is when it ends, `inside` whether pauses within phases count, `share` what a second in which any
    process moves data costs the run, `reads_back` whether the app reads its output, and `library_s` the l of the
    module.
    """
    moving = hidden = copying = pauses = 0.0
    count = largest = 0
    if reads:
        phases = _with_inputs(phases)
    spans = sorted((span, place) for place, phase in enumerate(phases) for span in phase.spans)
    for number, ((start, end), place) in enumerate(spans):
        phase = phases[place]
        busy = _busy_s(phase, reads=reads)
        if not busy:
            continue
        last = number + 1 == len(spans)
        if reads:
            idle = max(0.0, start - spans[number - 1][0][1]) if number else 0.0
            is_bound = bool(number) and phases[spans[number - 1][1]].kind in ("write", "mixed")
        else:
            idle = max(0.0, (end_s if last else spans[number + 1][0][0]) - end)
            is_bound = not last and phases[spans[number + 1][1]].kind in ("read", "mixed")
        if reads_back and is_bound:
            idle = 0.0
        if inside and not reads_back:
            idle += _idle_inside_s(phase, end - start)
        moved = phase.io.bytes.read if reads else phase.io.bytes.written
        of_process = (moved or 0) / phase.count / max(1, phase.processes)
        busy *= share
        pauses += idle
        moving += busy
        hidden += min(busy, idle)
        copying += min(busy, idle, of_process / COPY_RATE)
        count += min(busy, idle) > 0
        largest = max(largest, round(of_process))
    pauses = max(0.0, pauses - library_s)
    return Overlap(moving, min(hidden, pauses), copying, pauses, count, largest)


def _with_inputs(phases: Sequence[Phase]) -> list[Phase]:
    """Without phases that read next to nothing: they write, or load the program."""
    least = _LEAST_PART * sum(phase.io.bytes.read or 0 for phase in phases)
    return [p for p in phases if p.kind != "read" or p.io.bytes.read is None or p.io.bytes.read >= least]


def _busy_s(phase: Phase, *, reads: bool) -> float:
    """Seconds of one repetition in which any process moves data in the direction; 0 where the phase does not."""
    if phase.kind not in ("mixed", "read" if reads else "write"):
        return 0.0
    times = phase.io.busy_s
    busy = times.total if phase.kind == "read" else times.read if reads else times.write
    return (busy or 0.0) / phase.count


def _idle_inside_s(phase: Phase, length_s: float) -> float:
    """Seconds of one repetition of `length_s` in which no process does I/O; 0 where pauses are short."""
    idle = max(0.0, length_s - seconds(phase.io.busy_s.total) / phase.count)
    ops = phase.io.ops
    calls = 0.0 if ops is None else ops.all / phase.count / max(1, phase.processes)
    return idle if idle >= _LEAST_PAUSE_S * calls else 0.0
