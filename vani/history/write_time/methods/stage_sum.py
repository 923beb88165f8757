"""Sum of the times of all stages: load over bandwidth each, with bandwidths that cannot be negative.

What holds if a byte is at one stage at a time. A coefficient is the reciprocal of a bandwidth; of a stage that never
binds it is 0: not identified.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vani.history.write_time.non_negative import non_negative_fit
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, only_loads, stage_loads

NAME: Final = "stage_sum"
ABOUT: Final = "sum of stage times, coefficients of 0 or more"
ORDER: Final = 3


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the coefficients to squared errors, between absolute and relative ones."""
    del scale
    columns = only_loads(stage_loads(samples, known))
    matrix = np.stack(list(columns.values()), axis=1)
    found = non_negative_fit(matrix, samples.seconds, samples.seconds**-0.5)
    return {"coefficients": {n: float(c) for n, c in zip(columns, found, strict=True) if c > 0}}


def refit(parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """The costs of the stages by other samples."""
    del parameters
    return dict(fit(samples, scale, known)["coefficients"])


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Add up the stages."""
    columns = stage_loads(samples, known)
    seconds = np.zeros(len(samples))
    for name, coefficient in parameters["coefficients"].items():
        seconds += coefficient * columns[name]
    return seconds
