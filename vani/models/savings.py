"""Savings of a program that changes its I/O: larger requests, a broadcast, compression, and I/O while it computes.

The cost of many small requests, and what remains of it if few large ones move the same bytes.

A request of s bytes by one process takes

    t(s) = L + s / b

where L is the latency, which does not depend on s, and b the rate at which one process moves bytes. L follows from the
mean time of a request and a known b, and is at least 0: a request that is faster than b was served by a
cache and would gain nothing from being larger. If n' of n requests remain, the saving is (n - n') * L.

b is the rate of one target from the machine's description. Without a description it is the rate of one process in
OPRAEL's measured sweep (Tianhe prototype, IOR, one writer: 0.3 GB/s).

The time to send one process's bytes to all others.

Long-message broadcast, scatter then ring (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005, section 4.3):

    T = (log2 P + P - 1) * alpha + 2 * (P - 1) / P * n * beta

For short messages, MPI libraries use a tree of log2 P steps; the formula is an upper bound for these too.

The time to compress data and move it, compared with moving it uncompressed.

A process moves a byte in 1 / b seconds, where b is its bytes over the time that all processes spend in these calls. A
codec turns r bytes into one, at c bytes of uncompressed data per second and core. With compression, a byte takes

    1 / (r b) + 1 / c seconds,    or 1 / r + b / c of the time before.

This is less only if c > b r / (r - 1): with fast storage, compression costs more than it saves. Each process
compresses its own bytes, and the program's next step waits for that as it waited for the storage. In the best case the
cores are idle anyway, and only 1 / r of the time is left.

Requests that wait for a server rather than for their bytes do not become faster: the possible saving is the time that
the bytes take at b.

The part of an app's writing (or reading) that can happen while it computes.

Phase i writes for w_i seconds. Then g_i seconds without I/O pass until the next phase begins or the app ends. Within
the phase, no process does I/O for p_i seconds. These pauses count only if no library exchanges data between the
file-system calls, because then they belong to the library, and only if they are at least a millisecond per call: less
is the time of the program and the tracer between calls. A program that reads back its output must have written it
by then, so a pause before reading hides nothing, nor does a pause between calls of the same phase. For l seconds of
the pauses, the slowest process is in libraries outside file-system calls, which is I/O, too; it takes
the same share of each. With writing in the background,

    hidden = sum over i of min(w_i, (g_i + p_i) (1 - l / sum over all of (g_i + p_i)))

leaves the critical path: a buffer must be free before the next phase fills it. A copy of the bytes in memory remains,
v_i / c, where v_i is the bytes and c the copy rate of a participating process. Phases in one row of the profile count
as equally long and evenly spaced.

Reading is the same with g_i before the phase: the program reads the next input while it computes on the last one. The
first phase has no g_i. Phases with less than a hundredth of the bytes read are left out: a program loads modules and
settings before its first input. In phases that only read, files are also opened ahead, so w_i is all I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.models.run_time import seconds
from vani.units import MiB

if TYPE_CHECKING:
    from vani.schema.dataset_facts import Codec
    from vani.schema.profile import Phase


PROCESS_RATE: Final = 300e6
"""b without a description: bytes per second of one process."""

COPY_RATE: Final = 5e9
"""Bytes per second that one core copies in memory while others copy, too (general knowledge)."""

LARGE: Final = 4 * MiB
"""Bytes of a request after aggregation: `cb_buffer_size` in the ROMIO guide, and Lustre's present stripe size."""


def rest_of(moved: int, operations: int, seconds: float, left: int, rate: float) -> tuple[float, float]:
    """Share of the time, 0..1, that remains with `left` requests: expected, and at best.

    Parameters
    ----------
    moved, operations, seconds
        Bytes, requests, and their time summed over processes.
    rate
        b in bytes per second. In the best case, all of a request's time except a copy in memory is latency.
    """
    if not operations or not seconds:
        return 1.0, 1.0
    fewer = min(1.0, left / operations)

    def rest(faster: float) -> float:
        latency = max(0.0, 1.0 - moved / faster / seconds)
        return 1.0 - latency * (1.0 - fewer)

    expected = rest(rate)
    return expected, min(expected, rest(COPY_RATE))


def requests(io: Iterable[tuple[int, int, float]], size: int = LARGE) -> int:
    """Number of requests of `size` bytes that move the bytes of each file, at most the present number.

    `io` has (bytes, operations, seconds) of each file.
    """
    return sum(min(operations, math.ceil(moved / size)) for moved, operations, _ in io)


LATENCY_S = 10e-6
"""alpha: five times the 1 to 2 µs typical of InfiniBand and similar networks (general knowledge)."""


def broadcast_s(size: int, processes: int, bandwidth: float) -> float:
    """Seconds to broadcast `size` bytes to `processes` over links of `bandwidth` bytes per second."""
    if processes <= 1:
        return 0.0
    steps = math.log2(processes) + processes - 1
    return steps * LATENCY_S + 2 * (processes - 1) / processes * size / bandwidth


@dataclass(frozen=True)
class Choice:
    """A codec and the share of the time that remains with it, `rest` expected and `best` at best."""

    codec: Codec
    rest: float
    best: float


def best_codec(codecs: Sequence[Codec], moves: Sequence[tuple[int, float, bool]]) -> Choice | None:
    """The codec with the least remaining time; None if there is no codec or no time.

    Parameters
    ----------
    moves
        For each file and direction: bytes, seconds summed over processes, and True if the bytes were read.
    """
    total = sum(time_s for _, time_s, _ in moves)
    if not total or not codecs:
        return None

    def left(codec: Codec) -> Choice:
        rest = best = 0.0
        for moved, time_s, reads in moves:
            rest += time_s / codec.ratio + moved / (codec.decompress if reads else codec.compress)
            best += time_s / codec.ratio
        return Choice(codec, rest / total, best / total)

    # Of equal codecs the first, which is the simplest.
    return min((left(codec) for codec in codecs), key=lambda choice: choice.rest)


_LEAST_PART: Final = 0.01
"""Least share of the bytes read for a phase to count (see the module)."""
_LEAST_PAUSE_S: Final = 1e-3
"""Least pause per call (our choice): 20 times the cost of strace per call, and the cost of passing a buffer to a
thread and back."""


@dataclass(frozen=True)
class Overlap:
    """Seconds of moving data, of the part hidden behind computing, and of the copy that this needs.

    `phases` is the number of phases that hide some, of `moves` in all, and `pauses` the number of those that hide all.
    `largest` is the most bytes that a process must buffer, as a mean over the processes of a phase.
    """

    moving_s: float
    hidden_s: float
    copying_s: float
    moves: int
    pauses: int
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
    """The overlap that is possible in the phases of one app, for its writing or, with `reads`, its reading.

    The app ends at `end_s`. `inside` counts pauses within phases. `share` is the time that a second in which any
    process moves data costs the run. `reads_back` means that the app reads its output. `library_s` is l in the module
    docstring.
    """
    # Seconds of moving, of the pause, and of the copy.
    moves: list[tuple[float, float, float]] = []
    largest = 0
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
        moves.append((busy * share, idle, of_process / COPY_RATE))
        largest = max(largest, round(of_process))
    pauses_s = sum(idle for _, idle, _ in moves)
    computing = max(0.0, 1 - library_s / pauses_s) if pauses_s else 0.0
    moves = [(busy, idle * computing, copy) for busy, idle, copy in moves]
    return Overlap(
        moving_s=sum(busy for busy, _, _ in moves),
        hidden_s=sum(min(busy, idle) for busy, idle, _ in moves),
        copying_s=sum(map(min, moves)),
        moves=len(moves),
        pauses=sum(idle >= busy for busy, idle, _ in moves),
        phases=sum(min(busy, idle) > 0 for busy, idle, _ in moves),
        largest=largest,
    )


def _with_inputs(phases: Sequence[Phase]) -> list[Phase]:
    """The phases without those that only load the program, which read next to nothing."""
    least = _LEAST_PART * sum(phase.io.bytes.read or 0 for phase in phases)
    return [p for p in phases if p.kind != "read" or p.io.bytes.read is None or p.io.bytes.read >= least]


def _busy_s(phase: Phase, *, reads: bool) -> float:
    """Seconds of one repetition in which any process moves data in the direction; 0 if the phase has another."""
    if phase.kind not in ("mixed", "read" if reads else "write"):
        return 0.0
    times = phase.io.busy_s
    busy = times.total if phase.kind == "read" else times.read if reads else times.write
    return (busy or 0.0) / phase.count


def _idle_inside_s(phase: Phase, length_s: float) -> float:
    """Seconds of one repetition of `length_s` in which no process does I/O; 0 if its pauses are short."""

    idle = max(0.0, length_s - seconds(phase.io.busy_s.total) / phase.count)
    ops = phase.io.ops
    calls = 0.0 if ops is None else ops.all / phase.count / max(1, phase.processes)
    return idle if idle >= _LEAST_PAUSE_S * calls else 0.0
