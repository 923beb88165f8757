"""The pause that separates phases, derived from the data.

The paper splits phases by "a threshold between two I/O calls" and gives no value (section IV-B.1). A pause is a time
in which no process of the app is in a call. An app's pauses, longest first, are g1 >= g2 >= ...; any threshold between
g(k+1) and gk gives k + 1 phases. The gap is the geometric middle of the range that is widest on a logarithmic
scale: the number of phases is then stable for the widest choice of thresholds around
it, so neither noise in the times nor a slightly different threshold changes it. A single phase competes as a range
from the longest pause to a thirtieth of the run.

No gap is shorter than half a second or a thousandth of the run, because ranks that share cores delay each other this
long even without computation. 16 ranks on two cores pass a barrier in up to 0.32 s, and the pauses of a run without
any computation have all lengths up to this, so the widest range among them is chance. Shorter pauses
are judged by the activity of processes (`phase_cuts.py`), not by their length. Pauses below the floor of
the survey (1 ms, a ten-thousandth of the run) are not visible, because clocks of ranks agree no better.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

MOST_PHASES = 1000

_LEAST_NS = 500_000_000
_LEAST_SHARE = 1000

Ints = NDArray[np.int64]


def least_gap_ns(run_ns: int) -> int:
    """The shortest gap that is derived from the data; `run_ns` as below."""
    return max(_LEAST_NS, run_ns // _LEAST_SHARE)


def default_gap_ns(pauses: Ints, *, run_ns: int, floor_ns: int) -> int:
    """Choose the gap for an app.

    Parameters
    ----------
    pauses
        Lengths of the pauses longer than `floor_ns`, in any order.
    run_ns
        Length of the app's I/O from first to last call.
    """
    least = max(floor_ns, least_gap_ns(run_ns))
    longest = np.sort(pauses)[::-1].astype(np.float64)[:MOST_PHASES]
    if not len(longest) or longest[0] <= least:
        return least
    bounds = np.concatenate(([max(run_ns / 30, longest[0])], longest, [float(floor_ns)]))
    widths = np.log(bounds[:-1]) - np.log(bounds[1:])
    if len(pauses) > MOST_PHASES:
        # There are more below the last pause examined, so that range is not empty.
        widths = widths[:-1]
    # A range that ends below the least gap separates nothing that may be separated.
    widths = widths[bounds[: len(widths)] > least]
    best = int(np.argmax(widths))
    middle = math.sqrt(bounds[best] * bounds[best + 1])
    return max(least, _rounded(middle, bounds[best + 1], bounds[best]))


def _rounded(value: float, low: float, high: float) -> int:
    """Round to two significant digits if the result stays within the range."""
    step = 10 ** (math.floor(math.log10(value)) - 1)
    rounded = round(value / step) * step
    return int(rounded if low <= rounded < high else value)


def split(start: Ints, end: Ints, gap_ns: int) -> tuple[Ints, Ints]:
    """Starts and ends of parts without a longer pause, from an app's busy intervals (ascending, disjoint)."""
    if not len(start):
        return start, end
    opens = np.append(True, start[1:] - end[:-1] > gap_ns)
    return start[opens], end[np.append(opens[1:], True)]
