"""The paper's search with squared relative errors, validated on a part of the largest training scale.

A write of 5 seconds counts as much as one of 500, and no sample of the test set helps to choose: the paper validates on
a part of its test set.
"""

from __future__ import annotations

from typing import Any, Final

from vani.history.write_time.lasso_search import predict_linear, search, shrunk
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds

NAME: Final = "relative_lasso"
ABOUT: Final = "Lasso over subsets of scales, relative errors"
ORDER: Final = 7


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Search; see `lasso_search.search`."""
    return search(samples, scale, known, relative=True)


def refit(parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """The coefficients by other samples of the same scales, with the same shrinkage."""
    return shrunk(parameters, samples, scale, known, relative=True)


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Add up the terms."""
    return predict_linear(parameters, samples, known)
