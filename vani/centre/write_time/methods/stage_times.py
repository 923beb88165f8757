"""Methods that add up the times of stages: load over bandwidth each, with non-negative bandwidths.

`stage_sum` applies if a byte is at one stage at a time. A coefficient is the reciprocal of a bandwidth; 0 for a
stage that never limits, which is then not identified. `bottleneck` is a p-norm of the stage times, from their sum
(p = 1) towards the largest alone, and applies if a byte passes one stage while the next byte follows.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from vani.centre.write_time.methods import Method
from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import Kinds, only_loads, stage_loads
from vani.errors import InputError

_NORMS: Final = (2.0, 4.0, 8.0, 16.0)
_MOST_SAMPLES: Final = 1500
_STEPS: Final = 60
_BINDS: Final = 0.02
"""Minimum share of a sample's time for a stage to be identified."""

_NormFit = tuple[float, float, float, Floats]
"""Half the sum of squared errors, norm, start, and cost of each stage."""


def non_negative_fit(matrix: Floats, target: Floats, weights: Floats) -> Floats:
    """Minimise sum (weights * (matrix @ x - target))^2 over x >= 0.

    Parameters
    ----------
    matrix
        Shape (samples, features).
    target, weights
        Shape (samples,).

    Raises
    ------
    InputError
        scipy is not installed.
    """
    try:
        from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError(
            "needs scipy", where="sum of stage times", todo="pip install 'vani-io[centre]'"
        ) from None

    size = np.abs(matrix).max(axis=0)
    size[size == 0] = 1.0
    scaled = matrix / size * weights[:, None]
    # The QR factors have as many rows as features, however many samples there are.
    q, r = np.linalg.qr(scaled)
    coefficients, _ = nnls(r, q.T @ (target * weights), maxiter=50 * matrix.shape[1])
    return np.asarray(coefficients / size)


def _fit_sum(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the coefficients with a loss between absolute and relative squared errors."""
    del scale
    columns = only_loads(stage_loads(samples, known))
    matrix = np.stack(list(columns.values()), axis=1)
    costs = non_negative_fit(matrix, samples.seconds, samples.seconds**-0.5)
    return {"coefficients": {n: float(c) for n, c in zip(columns, costs, strict=True) if c > 0}}


def _refit_sum(parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """Estimate the costs of the stages from other samples."""
    del parameters
    return dict(_fit_sum(samples, scale, known)["coefficients"])


def _predict_sum(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    columns = stage_loads(samples, known)
    seconds = np.zeros(len(samples))
    for name, coefficient in parameters["coefficients"].items():
        seconds += coefficient * columns[name]
    return seconds


def _fit_norm(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the stages by squared relative errors for each norm, and keep the best norm."""
    del scale
    samples = _some(samples)
    columns = only_loads(stage_loads(samples, known))
    columns.pop("1")
    matrix = np.stack(list(columns.values()), axis=1)
    begin = _beginning(matrix, samples.seconds)
    best = min((_fitted(matrix, samples.seconds, begin, norm) for norm in _NORMS), key=lambda fit: fit[0])
    _, norm, start, costs = _fewest(matrix, samples.seconds, best)
    shares = matrix * costs / samples.seconds[:, None]
    binds = shares.max(axis=0) > _BINDS
    names = np.array(list(columns))
    return {
        "norm": norm,
        "start": start,
        "coefficients": {str(n): float(c) for n, c in zip(names[binds], costs[binds], strict=True)},
    }


def _refit_norm(
    parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds
) -> dict[str, float]:
    """Estimate the costs of the same stages from other samples, with the same norm."""
    del scale
    if not parameters["coefficients"]:
        return {}
    samples = _some(samples)
    columns = stage_loads(samples, known)
    matrix = np.stack([columns[name] for name in parameters["coefficients"]], axis=1)
    begin = np.array(list(parameters["coefficients"].values()))
    _, _, start, costs = _fitted(matrix, samples.seconds, begin, parameters["norm"], parameters["start"])
    return {"1": start, **dict(zip(parameters["coefficients"], costs.tolist(), strict=True))}


def _predict_norm(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """The norm of the stage times, plus the start."""
    columns = stage_loads(samples, known)
    parts = [cost * columns[name] for name, cost in parameters["coefficients"].items()]
    if not parts:
        return np.full(len(samples), float(parameters["start"]))
    return float(parameters["start"]) + _norm(np.stack(parts, axis=1), float(parameters["norm"]))


def _fewest(matrix: Floats, seconds: Floats, best: _NormFit) -> _NormFit:
    """Remove, one by one, stages without which the rest explains the samples as well (Schwarz's criterion).

    Two stages with proportional loads in all samples can share one cost in any way, but differ beyond the samples.
    The fewest stages promise least about what no sample has shown.
    """
    allowed = math.log(len(seconds)) / len(seconds)
    while (best[3] > 0).sum() > 1:
        used = np.flatnonzero(best[3] > 0)
        weight = (matrix[:, used] * best[3][used] / seconds[:, None]).max(axis=0)
        for stage in used[np.argsort(weight)]:
            begin = best[3].copy()
            begin[stage] = 0.0
            fewer = _fitted(matrix, seconds, begin, best[1], best[2])
            if math.log(fewer[0] / best[0]) < allowed:
                best = fewer
                break
        else:
            break
    return best


def _some(samples: Samples) -> Samples:
    if len(samples) <= _MOST_SAMPLES:
        return samples
    return samples.only(np.arange(len(samples)) % -(-len(samples) // _MOST_SAMPLES) == 0)


def _beginning(matrix: Floats, seconds: Floats) -> Floats:
    """Initial costs from the sum of stages; a stage without a cost there gets a hundredth of its maximum."""
    summed = non_negative_fit(matrix, seconds, 1.0 / seconds)
    with np.errstate(divide="ignore"):
        most = np.min(np.where(matrix > 0, seconds[:, None] / matrix, np.inf), axis=0)
    return np.asarray(np.maximum(summed, 0.01 * np.where(np.isfinite(most), most, 0.0)))


def _fitted(
    matrix: Floats, seconds: Floats, begin: Floats, norm: float, start: float | None = None
) -> _NormFit:
    from scipy.optimize import least_squares  # noqa: PLC0415 - heavy

    used = begin > 0
    chosen = matrix[:, used]

    def wrong(logs: Floats) -> Floats:
        return np.asarray((np.exp(logs[0]) + _norm(chosen * np.exp(logs[1:]), norm)) / seconds - 1.0)

    def slope(logs: Floats) -> Floats:
        parts = chosen * np.exp(logs[1:])
        total = _norm(parts, norm)
        each = np.where(
            total[:, None] > 0, (parts / np.maximum(total, 1e-300)[:, None]) ** (norm - 1) * parts, 0.0
        )
        return np.concatenate([np.full((len(seconds), 1), np.exp(logs[0])), each], axis=1) / seconds[:, None]

    start = max(1e-6, 0.2 * float(seconds.min()) if start is None else start)
    first = np.concatenate([[np.log(start)], np.log(begin[used])])
    # The solver retracts a step that overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        solution = least_squares(
            wrong, first, jac=slope, max_nfev=_STEPS, x_scale=1.0, loss="soft_l1", f_scale=0.2
        )
    costs = np.zeros(matrix.shape[1])
    costs[used] = np.exp(solution.x[1:])
    return max(float(solution.cost), 1e-300), norm, float(np.exp(solution.x[0])), costs


def _norm(parts: Floats, norm: float) -> Floats:
    largest = parts.max(axis=1)
    scaled = parts / np.maximum(largest, 1e-300)[:, None]
    return np.asarray(largest * (scaled**norm).sum(axis=1) ** (1 / norm))


METHODS = (
    Method("stage_sum", 3, _fit_sum, _predict_sum, _refit_sum),
    Method("bottleneck", 4, _fit_norm, _predict_norm, _refit_norm),
)
