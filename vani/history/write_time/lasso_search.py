"""Exact Lasso paths over all subsets of training scales, from Gram matrices that add up."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from vani.errors import InputError
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import KNOWN, Columns, Kinds, stage_loads

__all__ = ["linear_features", "predict_linear", "search", "shrunk"]

MOST_SHRINKAGE: Final = 10.0
_MOST_SUBSETS: Final = 255
_VALIDATION: Final = 0.2
_SEED: Final = 0


def linear_features(samples: Samples, known: Kinds) -> Columns:
    """Loads and their reciprocals, as the paper pairs them, by name; columns that Vani does not know as they are."""
    loads = stage_loads(samples, known)
    loads.pop("1")
    inverse = {
        f"1/({name})": np.divide(1.0, column, out=np.zeros_like(column), where=column > 0)
        for name, column in loads.items()
        if name not in samples.numbers or name in KNOWN
    }
    return Columns(loads | inverse, samples)


def search(samples: Samples, scale: Floats, known: Kinds, *, relative: bool) -> dict[str, Any]:
    """Fit every subset of scales and choose subset and shrinkage on a fifth of the largest scale, which no fit sees.

    Parameters
    ----------
    scale
        Shape (samples,).
    relative
        Squared relative errors, else absolute ones.

    Raises
    ------
    InputError
        scikit-learn is not installed, or the samples are too few.
    """
    names, matrix, middle, width = _standard(samples, known)
    weights = 1.0 / samples.seconds if relative else np.ones(len(samples))
    validation = _held_out(scale)
    scales = np.unique(scale)
    grams = [_gram(matrix, samples.seconds, weights, (scale == one) & ~validation) for one in scales]
    best: tuple[float, Floats, tuple[float, ...], float] | None = None
    check = matrix[validation], samples.seconds[validation], weights[validation]
    for subset in _subsets(len(scales)):
        gram, toward, count = (sum(grams[one][part] for one in subset) for part in range(3))
        if count < 2:
            continue
        for shrinkage, coefficients in _path(np.asarray(gram), np.asarray(toward), float(count)):
            wrong = float((((check[0] @ coefficients - check[1]) * check[2]) ** 2).mean())
            if best is None or wrong < best[0] * (1 - 1e-9):
                best = wrong, coefficients, tuple(scales[list(subset)].tolist()), shrinkage
    if best is None:
        raise InputError(
            "too few samples beside those that choose", where="Lasso", todo="measure more writes, or another --method"
        )
    _, coefficients, chosen, shrinkage = best
    found = coefficients[1:] / width
    return {
        "intercept": float(coefficients[0] - found @ middle),
        "coefficients": {name: float(value) for name, value in zip(names, found, strict=True) if value != 0},
        "scales": list(chosen),
        "shrinkage": shrinkage,
    }


def shrunk(
    parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds, *, relative: bool
) -> dict[str, float]:
    """The coefficients by other samples of the scales that the search chose, with its shrinkage.

    Parameters
    ----------
    parameters
        What `search` found.
    """
    names, matrix, _, width = _standard(samples, known)
    weights = 1.0 / samples.seconds if relative else np.ones(len(samples))
    path = _path(*_gram(matrix, samples.seconds, weights, np.isin(scale, parameters["scales"])))
    if not path:
        return {}
    shrinkages = np.array([shrinkage for shrinkage, _ in path])
    corners = np.array([coefficients[1:] for _, coefficients in path])
    # Between its corners the path is straight; `interp` wants the shrinkages to rise.
    at = float(parameters["shrinkage"])
    found = [np.interp(at, shrinkages[::-1], corner[::-1]) for corner in corners.T]
    return dict(zip(names, (np.array(found) / width).tolist(), strict=True))


def predict_linear(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Add up intercept and terms; a time below a thousandth of a second is none."""
    columns = linear_features(samples, known)
    seconds = np.full(len(samples), float(parameters["intercept"]))
    for name, coefficient in parameters["coefficients"].items():
        seconds += coefficient * columns[name]
    return np.asarray(np.maximum(seconds, 1e-3))


def _standard(samples: Samples, known: Kinds) -> tuple[list[str], Floats, Floats, Floats]:
    """Names of the features that differ, a column of ones and them in standard units, their means and widths."""
    columns = linear_features(samples, known)
    matrix = np.stack(list(columns.values()), axis=1)
    middle, width = matrix.mean(axis=0), matrix.std(axis=0)
    used = width > 1e-12 * np.abs(middle)
    inner = (matrix[:, used] - middle[used]) / width[used]
    names = [name for name, there in zip(columns, used, strict=True) if there]
    return names, np.concatenate([np.ones((len(samples), 1)), inner], axis=1), middle[used], width[used]


def _held_out(scale: Floats) -> npt.NDArray[np.bool_]:
    """A fifth of the largest scale, at least one sample."""
    largest = np.flatnonzero(scale == scale.max())
    chosen = np.random.default_rng(_SEED).permutation(largest)[: max(1, round(_VALIDATION * len(largest)))]
    found = np.zeros(len(scale), dtype=bool)
    found[chosen] = True
    return found


def _gram(
    matrix: Floats, seconds: Floats, weights: Floats, there: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, float]:
    weighted = matrix[there] * weights[there, None]
    return weighted.T @ weighted, weighted.T @ (seconds[there] * weights[there]), float(there.sum())


def _subsets(count: int) -> list[tuple[int, ...]]:
    """All non-empty subsets of scales; of many scales those that reach to the largest."""
    if 2**count - 1 <= _MOST_SUBSETS:
        return [one for size in range(1, count + 1) for one in combinations(range(count), size)]
    return [tuple(range(first, count)) for first in range(count)]


def _path(gram: Floats, toward: Floats, count: float) -> list[tuple[float, Floats]]:
    """The exact path from shrinkage 10 to 0, at its corners; the intercept, column 0, is not shrunk."""
    try:
        from sklearn.linear_model import lars_path_gram  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError(
            "needs scikit-learn", where="Lasso", todo="pip install 'vani-io[prediction]'"
        ) from None
    # The intercept is taken out: what is left is free of the column of weights.
    if gram[0, 0] <= 0:
        return []
    along = gram[0, 1:] / gram[0, 0]
    inner = gram[1:, 1:] - np.outer(along, gram[0, 1:])
    right = toward[1:] - along * toward[0]
    with warnings.catch_warnings():
        # Features that repeat each other are dropped, or the path ends where they do: what was found is exact.
        warnings.simplefilter("ignore")
        alphas, _, paths = lars_path_gram(
            right,
            inner,
            n_samples=round(count),
            alpha_min=0.0,
            method="lasso",
            max_iter=4 * len(right),
            eps=1e-9,
        )
    found = []
    for shrinkage, coefficients in zip(alphas, paths.T, strict=True):
        if shrinkage <= MOST_SHRINKAGE:
            intercept = toward[0] / gram[0, 0] - along @ coefficients
            found.append((float(shrinkage), np.concatenate([[intercept], coefficients])))
    return found
