"""Boosted regression trees on the logarithm of the time per byte, stored as plain arrays.

Trees are piecewise constant, so beyond the largest scale in training, they repeat its prediction.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vani.centre.write_time.methods import Method
from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import Kinds, described
from vani.errors import InputError

_TREES: Final = 400
_DEPTH: Final = 4
_RATE: Final = 0.05


def _fit(samples: Samples, scale: Floats, known: Kinds) -> dict[str, Any]:
    """Train the trees with a fixed seed.

    Raises
    ------
    InputError
        scikit-learn is not installed.
    """
    del scale
    try:
        from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError(
            "needs scikit-learn", where="method trees", todo="pip install 'vani-io[centre]'"
        ) from None
    columns = described(samples, known)
    size = np.maximum(samples.numbers.get("bytes", np.ones(len(samples))), 1.0)
    grown = GradientBoostingRegressor(
        n_estimators=_TREES, max_depth=_DEPTH, learning_rate=_RATE, subsample=0.7, random_state=0
    ).fit(np.stack(list(columns.values()), axis=1), np.log(samples.seconds / size))
    trees = [estimator.tree_ for estimator in grown.estimators_[:, 0]]
    return {
        "names": list(columns),
        "start": float(grown.init_.constant_[0, 0]),
        "trees": [
            {
                "feature": tree.feature.tolist(),
                "threshold": tree.threshold.tolist(),
                "left": tree.children_left.tolist(),
                "right": tree.children_right.tolist(),
                "value": (_RATE * tree.value[:, 0, 0]).tolist(),
            }
            for tree in trees
        ],
    }


def _predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Evaluate all trees."""
    columns = described(samples, known)
    matrix = np.stack([columns[name] for name in parameters["names"]], axis=1).astype(np.float32)
    size = np.maximum(samples.numbers.get("bytes", np.ones(len(samples))), 1.0)
    logs = np.full(len(samples), float(parameters["start"]))
    rows = np.arange(len(samples))
    for tree in parameters["trees"]:
        feature, threshold = np.array(tree["feature"]), np.array(tree["threshold"])
        left, right, value = np.array(tree["left"]), np.array(tree["right"]), np.array(tree["value"])
        at = np.zeros(len(samples), dtype=np.int64)
        # Each step goes one level down, so the number of steps is at most the number of nodes.
        for _ in range(len(feature)):
            inner = left[at] >= 0
            if not inner.any():
                break
            goes_left = matrix[rows, feature[at]] <= threshold[at]
            at = np.where(inner, np.where(goes_left, left[at], right[at]), at)
        logs += value[at]
    return np.asarray(np.exp(logs) * size)


METHODS = (Method("trees", 5, _fit, _predict),)
