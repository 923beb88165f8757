"""Sequences of behaviours with known laws, and how often a predictor that knows the law can be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vani.centre.prediction.behaviour.runs import Runs

AIOT_TABLE_1 = {
    "user1 wrf 1024": "001122211",
    "user2 cfd 256": "001111111",
    "user1 wrf 256": "001123444522",
    "usern md 2048": "00001122233",
}
"""The four sequences printed in the paper: 37 transitions."""


@dataclass(frozen=True)
class Law:
    """A law that draws a sequence, and the share that the best possible predictor gets right in the long run."""

    name: str
    draw: Callable[[np.random.Generator, int], list[int]]
    best: float


def _constant(random: np.random.Generator, length: int) -> list[int]:
    del random
    return [0] * length


def _period(random: np.random.Generator, length: int) -> list[int]:
    del random
    return [(0, 0, 1, 2)[step % 4] for step in range(length)]


def _sticky(random: np.random.Generator, length: int) -> list[int]:
    found = [0]
    for changes, other in zip(random.random(length) < 0.15, random.integers(1, 4, length), strict=True):
        found.append((found[-1] + int(other)) % 4 if changes else found[-1])
    return found[:length]


def _order_2(random: np.random.Generator, length: int) -> list[int]:
    """The last two behaviours determine the next one, nine times out of ten."""
    found = [0, 1]
    for odd, other in zip(random.random(length) < 0.1, random.integers(0, 3, length), strict=True):
        found.append(int(other) if odd else (found[-1] + 2 * found[-2] + 1) % 3)
    return found[:length]


def _drifting(random: np.random.Generator, length: int) -> list[int]:
    """Nine out of ten runs follow a fashion that changes every 60 runs; the others do any of the last three."""
    usual = np.arange(length) // 60
    back = random.integers(0, 3, length) * (random.random(length) < 0.1)
    return np.maximum(usual - back, 0).tolist()


def _mixed(random: np.random.Generator, length: int) -> list[int]:
    """Alternating periodic and sticky stretches of 100 runs each."""
    parts = [(_period, _sticky)[turn % 2](random, 100) for turn in range(length // 100 + 1)]
    return [one for part in parts for one in part][:length]


LAWS = (
    Law("constant", _constant, 1.0),
    Law("period", _period, 1.0),
    Law("sticky", _sticky, 0.85),
    Law("order 2", _order_2, 0.9 + 0.1 / 3),
    Law("drifting", _drifting, 0.9 + 0.1 / 3),
    Law("mixed", _mixed, (1.0 + 0.85) / 2),
)


def many_runs(number: int, categories: int = 200) -> Runs:
    """Runs of categories that follow the laws in turn, one second apart."""
    random = np.random.default_rng(3)
    category = random.integers(0, categories, number)
    ids = np.zeros(number, np.int64)
    for mine in range(categories):
        among = category == mine
        ids[among] = LAWS[1 + mine % (len(LAWS) - 1)].draw(random, int(among.sum()))
    submitted = np.arange(number, dtype=np.float64)
    none, nothing = np.full(number, np.nan), np.zeros(number)
    figures = {"bytes_read": nothing, "bytes_written": 1e9 * 2.0**ids, "metadata": nothing + 100}
    figures |= dict.fromkeys(("reads", "writes", "files", "runtime_s", "in_io_s"), none)
    names = [("app", f"user{mine}", 8) for mine in range(categories)]
    return Runs(names, category, submitted, submitted + 30.0, figures)
