"""Methods without stages: the mean time, the nearest sample, and a product of powers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vani.centre.write_time.methods import Method
from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import Kinds, described

_ROWS: Final = 512
"""Number of samples compared with all others in one step, which bounds the memory."""
_MOST_DOUBLINGS: Final = 100.0


def _fit_mean(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """The mean time of all samples, the baseline for every other method."""
    del scale, known
    return {"seconds": float(samples.seconds.mean())}


def _predict_mean(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    del known
    return np.full(len(samples), float(parameters["seconds"]))


def _fit_nearest(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """All samples, with their time per byte if bytes are known."""
    del scale
    columns = described(samples, known)
    size = samples.numbers.get("bytes", np.ones(len(samples)))
    return {
        "names": list(columns),
        "points": np.stack(list(columns.values()), axis=1).tolist(),
        "seconds_per_byte": (samples.seconds / np.maximum(size, 1.0)).tolist(),
    }


def _predict_nearest(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Take the nearest sample, measured in doublings of sizes and counts; the mean of equally near ones."""
    columns = described(samples, known)
    wanted = np.stack([columns[name] for name in parameters["names"]], axis=1)
    points, each = np.array(parameters["points"]), np.array(parameters["seconds_per_byte"])
    size = np.maximum(samples.numbers.get("bytes", np.ones(len(samples))), 1.0)
    per_byte = np.empty(len(samples))
    for begin in range(0, len(wanted), _ROWS):
        part = slice(begin, begin + _ROWS)
        apart = np.abs(wanted[part, None, :] - points[None, :, :]).sum(axis=2)
        near = apart <= apart.min(axis=1, keepdims=True) + 1e-9
        per_byte[part] = (near * each).sum(axis=1) / near.sum(axis=1)
    return per_byte * size


def _fit_powers(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the exponents by least squares in logarithms; collinear columns get the smallest exponents."""
    del scale
    columns = {name: column for name, column in described(samples, known).items() if np.ptp(column) > 0}
    matrix = np.stack([np.ones(len(samples)), *columns.values()], axis=1)
    powers, *_ = np.linalg.lstsq(matrix, np.log2(samples.seconds), rcond=1e-9)
    return {"intercept": float(powers[0]), "exponents": dict(zip(columns, powers[1:].tolist(), strict=True))}


def _predict_powers(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    columns = described(samples, known)
    logs = np.full(len(samples), float(parameters["intercept"]))
    for name, exponent in parameters["exponents"].items():
        logs += exponent * columns[name]
    return np.asarray(np.exp2(np.clip(logs, -_MOST_DOUBLINGS, _MOST_DOUBLINGS)))


METHODS = (
    Method("mean", 0, _fit_mean, _predict_mean),
    Method("nearest", 1, _fit_nearest, _predict_nearest),
    Method("log_linear", 2, _fit_powers, _predict_powers),
)
