"""The mean time of all samples: what every other method has to beat."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds

NAME: Final = "mean"
ABOUT: Final = "the mean time"
ORDER: Final = 0


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Remember the mean."""
    del scale, known
    return {"seconds": float(samples.seconds.mean())}


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """The same for all."""
    del known
    return np.full(len(samples), float(parameters["seconds"]))
