"""Time series of runs with known phases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Known", "known_runs"]


@dataclass(frozen=True)
class Known:
    """A run: its series, shape (samples, 3), its edges, and its variant."""

    series: np.ndarray
    edges: list[int]
    variant: int


def known_runs(seed: int, *, runs: int = 12, noise: float = 0.1) -> list[Known]:
    """Runs of one category in three variants: levels are the same within each, and lengths differ by a few samples.

    Levels of read, written and metadata differ between phases by at least half; some phases have idle time between
    them.
    """
    random = np.random.default_rng(seed)
    variants = [_variant(random) for _ in range(3)]
    found = []
    for number in range(runs):
        variant = 0 if number == 0 else int(random.integers(0, 3))
        levels, lengths = variants[variant]
        mine = lengths + random.integers(-2, 3, len(lengths))
        series = np.repeat(levels, mine, axis=0)
        series = series * np.exp(random.normal(0, noise, series.shape))
        found.append(Known(series, np.cumsum(mine)[:-1].tolist(), variant))
    return found


def _variant(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    count = int(random.integers(3, 9))
    levels = np.zeros((count, 3))
    for number in range(count):
        while True:
            level = np.exp(random.uniform(np.log(2e8), np.log(5e9), 3)) * (random.random(3) < 0.6)
            if number in (0, count - 1) and not level.any():
                continue
            before = levels[number - 1] if number else np.full(3, -1.0)
            ratio = np.maximum(level, before) / np.maximum(np.minimum(level, before), 1.0)
            if number == 0 or (ratio > 1.5).any():
                break
        levels[number] = level
    return levels, random.integers(6, 120, count)
