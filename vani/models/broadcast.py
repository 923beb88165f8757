"""The time to send one process's bytes to all others.

Long-message broadcast, scatter then ring (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005, section 4.3):

    T = (log2 P + P - 1) * alpha + 2 * (P - 1) / P * n * beta

For short messages, MPI libraries use a tree of log2 P steps; the formula is an upper bound for these too.
"""

from __future__ import annotations

import math

LATENCY_S = 10e-6
"""alpha: five times the 1 to 2 µs typical of InfiniBand and similar networks (general knowledge)."""


def broadcast_s(size: int, processes: int, bandwidth: float) -> float:
    """Seconds to broadcast `size` bytes to `processes` over links of `bandwidth` bytes per second."""
    if processes <= 1:
        return 0.0
    steps = math.log2(processes) + processes - 1
    return steps * LATENCY_S + 2 * (processes - 1) / processes * size / bandwidth
