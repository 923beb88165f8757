"""Linear in logarithms: the time as a product of powers of sizes and counts, by least squares."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, described

NAME: Final = "log_linear"
ABOUT: Final = "a product of powers"
ORDER: Final = 2

_MOST_DOUBLINGS: Final = 100.0


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the exponents; where columns repeat each other, the smallest ones."""
    del scale
    columns = {name: column for name, column in described(samples, known).items() if np.ptp(column) > 0}
    matrix = np.stack([np.ones(len(samples)), *columns.values()], axis=1)
    found, *_ = np.linalg.lstsq(matrix, np.log2(samples.seconds), rcond=1e-9)
    return {"intercept": float(found[0]), "exponents": dict(zip(columns, found[1:].tolist(), strict=True))}


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Multiply the powers."""
    columns = described(samples, known)
    logs = np.full(len(samples), float(parameters["intercept"]))
    for name, exponent in parameters["exponents"].items():
        logs += exponent * columns[name]
    return np.asarray(np.exp2(np.clip(logs, -_MOST_DOUBLINGS, _MOST_DOUBLINGS)))
