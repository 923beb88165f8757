"""Run-to-run noise."""

from __future__ import annotations

import math
from collections.abc import Sequence


def noise_of(groups: Sequence[Sequence[float]]) -> float | None:
    """Relative standard deviation of repeated runs, pooled over all settings; None if no setting was repeated."""
    squares, freedom = 0.0, 0
    for times in groups:
        if len(times) > 1:
            logs = [math.log(max(value, 1e-9)) for value in times]
            mean = sum(logs) / len(logs)
            squares += sum((value - mean) ** 2 for value in logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom) if freedom else None
