"""Lasso over all subsets of training scales and a range of shrinkage, as Xie et al. search (section III-B).

The Gram matrices of the scales add up, so the exact path of each subset is computed from matrices whose size
depends only on the features. `lasso` minimises squared absolute errors, as published, which the longest writes
dominate. `relative_lasso` minimises squared relative errors, so that a write of 5 seconds counts as much as one of
500. Both are validated on a part of the largest training scale, while the paper validates on a part of its test
set.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from vani.centre.write_time.methods import Method
from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import KNOWN, Columns, Kinds, stage_loads
from vani.errors import InputError

MOST_SHRINKAGE: Final = 10.0
_MOST_SUBSETS: Final = 255
_VALIDATION: Final = 0.2
_SEED: Final = 0


def linear_features(samples: Samples, known: Kinds) -> Columns:
    """Loads and their reciprocals by name, paired as in the paper; columns that Vani does not know are unchanged."""
    loads = stage_loads(samples, known)
    loads.pop("1")
    inverse = {
        f"1/({name})": np.divide(1.0, column, out=np.zeros_like(column), where=column > 0)
        for name, column in loads.items()
        if name not in samples.numbers or name in KNOWN
    }
    return Columns(loads | inverse, samples)


def search(samples: Samples, scale: Floats, known: Kinds, *, relative: bool) -> dict[str, Any]:
    """Fit every subset of scales, and choose subset and shrinkage on a held-out fifth of the largest scale.

    Parameters
    ----------
    scale
        Shape (samples,).
    relative
        Minimise squared relative errors instead of absolute ones.

    Raises
    ------
    InputError
        scikit-learn is not installed, or there are too few samples.
    """
    names, matrix, middle, width = _standard(samples, known)
    weights = 1.0 / samples.seconds if relative else np.ones(len(samples))
    validation = _held_out(scale)
    scales = np.unique(scale)
    grams = [_gram(matrix, samples.seconds, weights, (scale == limit) & ~validation) for limit in scales]
    best: tuple[float, Floats, tuple[float, ...], float] | None = None
    check = matrix[validation], samples.seconds[validation], weights[validation]
    for subset in _subsets(len(scales)):
        gram, toward, count = (sum(grams[number][part] for number in subset) for part in range(3))
        if count < 2:
            continue
        for shrinkage, coefficients in _path(np.asarray(gram), np.asarray(toward), float(count)):
            error = float((((check[0] @ coefficients - check[1]) * check[2]) ** 2).mean())
            if best is None or error < best[0] * (1 - 1e-9):
                best = error, coefficients, tuple(scales[list(subset)].tolist()), shrinkage
    if best is None:
        raise InputError(
            "too few samples besides the validation samples",
            where="Lasso",
            todo="measure more writes, or another --method",
        )
    _, coefficients, chosen, shrinkage = best
    slopes = coefficients[1:] / width
    return {
        "intercept": float(coefficients[0] - slopes @ middle),
        "coefficients": {name: float(value) for name, value in zip(names, slopes, strict=True) if value != 0},
        "scales": list(chosen),
        "shrinkage": shrinkage,
    }


def _shrunk(
    parameters: dict[str, Any], samples: Samples, scale: Floats, known: Kinds, *, relative: bool
) -> dict[str, float]:
    """Estimate the coefficients from other samples at the chosen scales and with the chosen shrinkage.

    Parameters
    ----------
    parameters
        The result of `search`.
    """
    names, matrix, _, width = _standard(samples, known)
    weights = 1.0 / samples.seconds if relative else np.ones(len(samples))
    path = _path(*_gram(matrix, samples.seconds, weights, np.isin(scale, parameters["scales"])))
    if not path:
        return {}
    shrinkages = np.array([shrinkage for shrinkage, _ in path])
    corners = np.array([coefficients[1:] for _, coefficients in path])
    # The path is linear between its corners; `interp` needs ascending shrinkages.
    at = float(parameters["shrinkage"])
    scaled = [np.interp(at, shrinkages[::-1], corner[::-1]) for corner in corners.T]
    return dict(zip(names, (np.array(scaled) / width).tolist(), strict=True))


def _predict(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Sum of intercept and terms, at least a thousandth of a second."""
    columns = linear_features(samples, known)
    seconds = np.full(len(samples), float(parameters["intercept"]))
    for name, coefficient in parameters["coefficients"].items():
        seconds += coefficient * columns[name]
    return np.asarray(np.maximum(seconds, 1e-3))


def _standard(samples: Samples, known: Kinds) -> tuple[list[str], Floats, Floats, Floats]:
    """Names of the features that vary, a matrix of ones and the standardised features, their means and deviations."""
    columns = linear_features(samples, known)
    matrix = np.stack(list(columns.values()), axis=1)
    middle, width = matrix.mean(axis=0), matrix.std(axis=0)
    used = width > 1e-12 * np.abs(middle)
    inner = (matrix[:, used] - middle[used]) / width[used]
    names = [name for name, varies in zip(columns, used, strict=True) if varies]
    return names, np.concatenate([np.ones((len(samples), 1)), inner], axis=1), middle[used], width[used]


def _held_out(scale: Floats) -> npt.NDArray[np.bool_]:
    """A fifth of the largest scale, at least one sample."""
    largest = np.flatnonzero(scale == scale.max())
    chosen = np.random.default_rng(_SEED).permutation(largest)[: max(1, round(_VALIDATION * len(largest)))]
    held_out = np.zeros(len(scale), dtype=bool)
    held_out[chosen] = True
    return held_out


def _gram(
    matrix: Floats, seconds: Floats, weights: Floats, used: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, float]:
    weighted = matrix[used] * weights[used, None]
    return weighted.T @ weighted, weighted.T @ (seconds[used] * weights[used]), float(used.sum())


def _subsets(count: int) -> list[tuple[int, ...]]:
    """All non-empty subsets of scales; with many scales, only ranges of neighbours up to the largest."""
    if 2**count - 1 <= _MOST_SUBSETS:
        return [subset for size in range(1, count + 1) for subset in combinations(range(count), size)]
    return [tuple(range(first, count)) for first in range(count)]


def _path(gram: Floats, toward: Floats, count: float) -> list[tuple[float, Floats]]:
    """The exact path from shrinkage 10 to 0, at its corners; the intercept, column 0, is not shrunk."""
    try:
        from sklearn.linear_model import lars_path_gram  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError(
            "needs scikit-learn", where="Lasso", todo="pip install 'vani-io[centre]'"
        ) from None
    # The intercept is eliminated first, since it is not shrunk.
    if gram[0, 0] <= 0:
        return []
    along = gram[0, 1:] / gram[0, 0]
    inner = gram[1:, 1:] - np.outer(along, gram[0, 1:])
    right = toward[1:] - along * toward[0]
    with warnings.catch_warnings():
        # Collinear features are dropped, or end the path; the path up to there is exact.
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
    corners = []
    for shrinkage, coefficients in zip(alphas, paths.T, strict=True):
        if shrinkage <= MOST_SHRINKAGE:
            intercept = toward[0] / gram[0, 0] - along @ coefficients
            corners.append((float(shrinkage), np.concatenate([[intercept], coefficients])))
    return corners


METHODS = tuple(
    Method(name, order, partial(search, relative=relative), _predict, partial(_shrunk, relative=relative))
    for name, order, relative in (("lasso", 6, False), ("relative_lasso", 7, True))
)
