"""The paper's search: Lasso over all subsets of training scales and a range of shrinkage (Xie et al., section III-B).

The Gram matrices of the scales add up, so the exact path of each subset is computed from matrices of the size of the
features, however many samples there are. Squared absolute errors, as published: they are ruled by the longest writes.
"""

from __future__ import annotations

from typing import Any, Final

from vani.history.write_time.lasso_search import predict_linear, search, shrunk
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds

NAME: Final = "lasso"
ABOUT: Final = "the paper's search: Lasso over subsets of scales"
ORDER: Final = 6


def fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Search; see `lasso_search.search`."""
    return search(samples, scale, known, relative=False)


def refit(parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """The coefficients by other samples of the same scales, with the same shrinkage."""
    return shrunk(parameters, samples, scale, known, relative=False)


def predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Add up the terms."""
    return predict_linear(parameters, samples, known)
