"""The slowest stage rules: a p-norm of the stage times, from their sum (p = 1) towards the largest alone.

What holds if a byte is on its way through one stage while the next one follows.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from vani.history.write_time.non_negative import non_negative_fit
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, only_loads, stage_loads

NAME: Final = "bottleneck"
ABOUT: Final = "p-norm of stage times, from their sum to the slowest alone"
ORDER: Final = 4

_NORMS: Final = (2.0, 4.0, 8.0, 16.0)
_MOST_SAMPLES: Final = 1500
_STEPS: Final = 60
_BINDS: Final = 0.02
"""A stage that never makes up so much of a sample's time is not identified."""

_Found = tuple[float, float, float, Floats]
"""Half the sum of squared errors, norm, start, and cost of each stage."""


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the stages by squared relative errors, for each norm; the best norm is kept."""
    del scale
    samples = _some(samples)
    columns = only_loads(stage_loads(samples, known))
    columns.pop("1")
    matrix = np.stack(list(columns.values()), axis=1)
    begin = _beginning(matrix, samples.seconds)
    best = min((_fitted(matrix, samples.seconds, begin, norm) for norm in _NORMS), key=lambda found: found[0])
    _, norm, start, costs = _fewest(matrix, samples.seconds, best)
    shares = matrix * costs / samples.seconds[:, None]
    binds = shares.max(axis=0) > _BINDS
    names = np.array(list(columns))
    return {
        "norm": norm,
        "start": start,
        "coefficients": {str(n): float(c) for n, c in zip(names[binds], costs[binds], strict=True)},
    }


def refit(parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """The costs of the same stages by other samples, by the same norm."""
    del scale
    if not parameters["coefficients"]:
        return {}
    samples = _some(samples)
    columns = stage_loads(samples, known)
    matrix = np.stack([columns[name] for name in parameters["coefficients"]], axis=1)
    begin = np.array(list(parameters["coefficients"].values()))
    _, _, start, costs = _fitted(matrix, samples.seconds, begin, parameters["norm"], parameters["start"])
    return {"1": start, **dict(zip(parameters["coefficients"], costs.tolist(), strict=True))}


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """The norm of the stage times, and the start."""
    columns = stage_loads(samples, known)
    parts = [cost * columns[name] for name, cost in parameters["coefficients"].items()]
    if not parts:
        return np.full(len(samples), float(parameters["start"]))
    return float(parameters["start"]) + _norm(np.stack(parts, axis=1), float(parameters["norm"]))


def _fewest(matrix: Floats, seconds: Floats, best: _Found) -> _Found:
    """Leave out, one by one, stages without which the rest explains the samples as well (Schwarz's criterion).

    Two stages whose loads are alike where it was measured share one cost in any way; beyond, they part. The fewest
    stages promise least that no sample has shown.
    """
    allowed = math.log(len(seconds)) / len(seconds)
    while (best[3] > 0).sum() > 1:
        used = np.flatnonzero(best[3] > 0)
        weight = (matrix[:, used] * best[3][used] / seconds[:, None]).max(axis=0)
        for stage in used[np.argsort(weight)]:
            begin = best[3].copy()
            begin[stage] = 0.0
            found = _fitted(matrix, seconds, begin, best[1], best[2])
            if math.log(found[0] / best[0]) < allowed:
                best = found
                break
        else:
            break
    return best


def _some(samples: Samples) -> Samples:
    if len(samples) <= _MOST_SAMPLES:
        return samples
    return samples.only(np.arange(len(samples)) % -(-len(samples) // _MOST_SAMPLES) == 0)


def _beginning(matrix: Floats, seconds: Floats) -> Floats:
    """What the sum of stages says; of stages that it leaves out, a hundredth of what they could cost at most."""
    summed = non_negative_fit(matrix, seconds, 1.0 / seconds)
    with np.errstate(divide="ignore"):
        most = np.min(np.where(matrix > 0, seconds[:, None] / matrix, np.inf), axis=0)
    return np.asarray(np.maximum(summed, 0.01 * np.where(np.isfinite(most), most, 0.0)))


def _fitted(
    matrix: Floats, seconds: Floats, begin: Floats, norm: float, start: float | None = None
) -> _Found:
    from scipy.optimize import least_squares  # noqa: PLC0415 - heavy

    used = begin > 0
    chosen = matrix[:, used]

    def wrong(logs: Floats) -> Floats:
        return np.asarray((np.exp(logs[0]) + _norm(chosen * np.exp(logs[1:]), norm)) / seconds - 1.0)

    def slope(logs: Floats) -> Floats:
        parts = chosen * np.exp(logs[1:])
        whole = _norm(parts, norm)
        each = np.where(
            whole[:, None] > 0, (parts / np.maximum(whole, 1e-300)[:, None]) ** (norm - 1) * parts, 0.0
        )
        return np.concatenate([np.full((len(seconds), 1), np.exp(logs[0])), each], axis=1) / seconds[:, None]

    start = max(1e-6, 0.2 * float(seconds.min()) if start is None else start)
    first = np.concatenate([[np.log(start)], np.log(begin[used])])
    # A step that leads out of all numbers is taken back.
    with np.errstate(over="ignore", invalid="ignore"):
        found = least_squares(
            wrong, first, jac=slope, max_nfev=_STEPS, x_scale=1.0, loss="soft_l1", f_scale=0.2
        )
    costs = np.zeros(matrix.shape[1])
    costs[used] = np.exp(found.x[1:])
    return max(float(found.cost), 1e-300), norm, float(np.exp(found.x[0])), costs


def _norm(parts: Floats, norm: float) -> Floats:
    largest = parts.max(axis=1)
    scaled = parts / np.maximum(largest, 1e-300)[:, None]
    return np.asarray(largest * (scaled**norm).sum(axis=1) ** (1 / norm))
