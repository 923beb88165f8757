"""Methods to predict write times from samples, and the loads that they use; plain methods are preferred in ties."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import combinations
from typing import Any, Final

import numpy as np

from vani.centre.columns import Flags, Floats
from vani.centre.write_time.published import GPFS, LOADS, LUSTRE
from vani.centre.write_time.samples import Samples
from vani.errors import InputError

# Features of any write: the load of each stage of its path, as far as the columns allow.
#
# A stage is something that bytes or requests have to pass: the whole file system, a compute node, a process, a
# target, an I/O node. Its load is the total bytes (or requests) divided by the number of its members. Each setting in
# a text column (layout, interface) has a load of its own, since a shared file is slower per byte, not by a constant
# time.

_SPREADS = ("nodes", "processes", "stripe_count", "io_nodes")
_PAPER = frozenset((*GPFS, *LUSTRE))
KNOWN = ("bytes", "request", *_SPREADS)
"""Columns with a known meaning."""


Kinds = Mapping[str, Sequence[str]]
"""The settings that occur in each text column, in order."""


def kinds_of(samples: Samples) -> dict[str, list[str]]:
    """The settings in each text column."""
    return {name: sorted(set(column.tolist())) for name, column in samples.words.items()}


class Columns(dict[str, Floats]):
    """Columns of samples by name, shape (samples,) each; a load that none of these samples has is 0.

    Samples to predict need not have all loads of the fitted ones, such as that of I/O nodes.
    """

    def __init__(self, columns: Mapping[str, Floats], samples: Samples) -> None:
        super().__init__(columns)
        self._length = len(samples)

    def __missing__(self, name: str) -> Floats:
        return np.zeros(self._length)


def stage_loads(samples: Samples, kinds: Kinds) -> Columns:
    """Loads that take proportional time, and columns unknown to Vani, by name; shape (samples,), non-negative."""
    loads = dict(_loads(samples))
    columns = dict(loads)
    for name, known in kinds.items():
        # One setting of each text column is the base, whose load is in the plain columns.
        for kind in known[1:]:
            there = (samples.words[name] == kind).astype(float)
            columns |= {f"{load} [{name}={kind}]": column * there for load, column in loads.items()}
    columns |= {name: column for name, column in samples.numbers.items() if name not in KNOWN}
    return Columns(columns, samples)


def _loads(samples: Samples) -> Iterator[tuple[str, Floats]]:
    numbers = samples.numbers
    ones = np.ones(len(samples))
    yield "1", ones
    size = numbers.get("bytes", ones)
    if "bytes" in numbers:
        yield from _over_members("bytes", size, numbers)
    if "request" in numbers:
        requests = size / np.maximum(numbers["request"], 1.0)
        yield from _over_members("requests", requests, numbers)
    for name in ("nodes", "processes", "stripe_count"):
        if name in numbers:
            yield name, numbers[name]


def _over_members(what: str, load: Floats, numbers: Mapping[str, Floats]) -> Iterator[tuple[str, Floats]]:
    yield what, load
    for name in _SPREADS:
        if name not in numbers:
            continue
        members = numbers[name]
        yield f"{what}/{name}", np.divide(load, members, out=np.zeros_like(load), where=members > 0)
        if (members == 0).any():
            yield f"{what} without {name}", np.where(members == 0, load, 0.0)


def only_loads(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The paper's features that are a stage's load; all features of other models."""
    return {name: column for name, column in columns.items() if name in LOADS or name not in _PAPER}


def described(samples: Samples, kinds: Kinds) -> dict[str, Floats]:
    """Columns that distinguish samples, with sizes and counts in doublings; for distances and trees."""
    numbers = samples.numbers
    columns = {name: np.log2(np.maximum(column, 0.5)) for name, column in numbers.items()}
    for name in _SPREADS[1:]:
        if name in numbers and "nodes" in numbers:
            columns[f"{name}/nodes"] = np.log2(np.maximum(numbers[name], 0.5) / np.maximum(numbers["nodes"], 1.0))
    for name, known in kinds.items():
        columns |= {f"{name}={kind}": 4.0 * (samples.words[name] == kind) for kind in known[1:]}
    return columns


# Methods to predict write times, discovered in the modules of this package; plain ones are preferred in ties.

Parameters = dict[str, Any]
"""Plain data that a document can store."""
Refit = Callable[[Parameters, Samples, Floats, Kinds], dict[str, float]]


@dataclass(frozen=True)
class Method:
    """A method to predict write times; `METHODS` lists all.

    Attributes
    ----------
    fit
        Called with samples, their scales, shape (samples,), and the settings in text columns; returns the
        parameters.
    predict
        Called with parameters, samples and settings; returns seconds, shape (samples,).
    refit
        For methods whose coefficients are costs of stages: estimates these costs from other samples, in seconds per
        unit of load. Called with parameters, samples, scales and settings.
    """

    fit: Callable[[Samples, Floats, Kinds], Parameters]
    predict: Callable[[Parameters, Samples, Kinds], Floats]
    refit: Refit | None = None


def _library(module: str, name: str, where: str) -> Any:
    """Import a heavy library, which is an extra."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"needs {name}", where=where, todo="pip install 'vani-io[centre]'") from None


def _sum_of_terms(start: float, coefficients: Mapping[str, float], columns: Mapping[str, Floats], count: int) -> Floats:
    seconds = np.full(count, start)
    for name, coefficient in coefficients.items():
        seconds += coefficient * columns[name]
    return seconds


# Methods without stages: the mean time, the nearest sample, and a product of powers.

_ROWS: Final = 512
"""Number of samples compared with all others in one step, which bounds the memory."""
_MAX_DOUBLINGS: Final = 100.0


def _fit_mean(samples: Samples, _: Floats, __: Kinds) -> dict[str, Any]:
    """The mean time of all samples, the baseline for every other method."""
    return {"seconds": float(samples.seconds.mean())}


def _predict_mean(parameters: dict[str, Any], samples: Samples, _: Kinds) -> Floats:
    return np.full(len(samples), float(parameters["seconds"]))


def _bytes(samples: Samples) -> Floats:
    """Bytes of each sample, at least 1; 1 if they are not known."""
    return np.maximum(samples.numbers.get("bytes", np.ones(len(samples))), 1.0)


def _fit_nearest(samples: Samples, _: Floats, known: Kinds) -> dict[str, Any]:
    """All samples, with their time per byte if bytes are known."""
    columns = described(samples, known)
    points = np.stack(list(columns.values()), axis=1).tolist()
    per_byte = (samples.seconds / _bytes(samples)).tolist()
    return {"names": list(columns), "points": points, "seconds_per_byte": per_byte}


def _predict_nearest(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Take the nearest sample, measured in doublings of sizes and counts; the mean of equally near ones."""
    columns = described(samples, known)
    wanted = np.stack([columns[name] for name in parameters["names"]], axis=1)
    points, each = np.array(parameters["points"]), np.array(parameters["seconds_per_byte"])
    per_byte = np.empty(len(samples))
    for begin in range(0, len(wanted), _ROWS):
        part = slice(begin, begin + _ROWS)
        apart = np.abs(wanted[part, None, :] - points[None, :, :]).sum(axis=2)
        near = apart <= apart.min(axis=1, keepdims=True) + 1e-9
        per_byte[part] = (near * each).sum(axis=1) / near.sum(axis=1)
    return per_byte * _bytes(samples)


def _fit_powers(samples: Samples, _: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the exponents by least squares in logarithms; collinear columns get the smallest exponents."""
    columns = {name: column for name, column in described(samples, known).items() if np.ptp(column) > 0}
    matrix = np.stack([np.ones(len(samples)), *columns.values()], axis=1)
    powers = np.linalg.lstsq(matrix, np.log2(samples.seconds), rcond=1e-9)[0]
    return {"intercept": float(powers[0]), "exponents": dict(zip(columns, powers[1:].tolist(), strict=True))}


def _predict_powers(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    columns = described(samples, known)
    logs = _sum_of_terms(float(parameters["intercept"]), parameters["exponents"], columns, len(samples))
    return np.asarray(np.exp2(np.clip(logs, -_MAX_DOUBLINGS, _MAX_DOUBLINGS)))


# Methods that add up the times of stages: load over bandwidth each, with non-negative bandwidths.
#
# `stage_sum` applies if a byte is at one stage at a time. A coefficient is the reciprocal of a bandwidth; 0 for a
# stage that never limits, which is then not identified. `bottleneck` is a p-norm of the stage times, from their sum
# (p = 1) towards the largest alone, and applies if a byte passes one stage while the next byte follows.

_NORMS: Final = (2.0, 4.0, 8.0, 16.0)
_MAX_SAMPLES: Final = 1500
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
    optimize = _library("scipy.optimize", "scipy", "sum of stage times")
    size = np.abs(matrix).max(axis=0)
    size[size == 0] = 1.0
    scaled = matrix / size * weights[:, None]
    # The QR factors have as many rows as features, however many samples there are.
    q, r = np.linalg.qr(scaled)
    coefficients, _ = optimize.nnls(r, q.T @ (target * weights), maxiter=50 * matrix.shape[1])
    return np.asarray(coefficients / size)


def _fit_sum(samples: Samples, _: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the coefficients with a loss between absolute and relative squared errors."""
    columns = only_loads(stage_loads(samples, known))
    matrix = np.stack(list(columns.values()), axis=1)
    costs = non_negative_fit(matrix, samples.seconds, samples.seconds**-0.5)
    return {"coefficients": {n: float(c) for n, c in zip(columns, costs, strict=True) if c > 0}}


def _refit_sum(_: dict[str, Any], samples: Samples, scale: Floats, known: Kinds) -> dict[str, float]:
    """Estimate the costs of the stages from other samples."""
    return dict(_fit_sum(samples, scale, known)["coefficients"])


def _predict_sum(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    return _sum_of_terms(0.0, parameters["coefficients"], stage_loads(samples, known), len(samples))


def _fit_norm(samples: Samples, _: Floats, known: Kinds) -> dict[str, Any]:
    """Fit the stages by squared relative errors for each norm, and keep the best norm."""
    samples = _some(samples)
    columns = only_loads(stage_loads(samples, known))
    columns.pop("1")
    matrix = np.stack(list(columns.values()), axis=1)
    begin = _beginning(matrix, samples.seconds)
    best = min((_fitted(matrix, samples.seconds, begin, norm) for norm in _NORMS), key=lambda fit: fit[0])
    norm, start, costs = _fewest(matrix, samples.seconds, best)[1:]
    shares = matrix * costs / samples.seconds[:, None]
    binds = shares.max(axis=0) > _BINDS
    names = np.array(list(columns))
    coefficients = {str(n): float(c) for n, c in zip(names[binds], costs[binds], strict=True)}
    return {"norm": norm, "start": start, "coefficients": coefficients}


def _refit_norm(parameters: dict[str, Any], samples: Samples, _: Floats, known: Kinds) -> dict[str, float]:
    """Estimate the costs of the same stages from other samples, with the same norm."""
    if not parameters["coefficients"]:
        return {}
    samples = _some(samples)
    columns = stage_loads(samples, known)
    matrix = np.stack([columns[name] for name in parameters["coefficients"]], axis=1)
    begin = np.array(list(parameters["coefficients"].values()))
    start, costs = _fitted(matrix, samples.seconds, begin, parameters["norm"], parameters["start"])[2:]
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
    if len(samples) <= _MAX_SAMPLES:
        return samples
    return samples.only(np.arange(len(samples)) % -(-len(samples) // _MAX_SAMPLES) == 0)


def _beginning(matrix: Floats, seconds: Floats) -> Floats:
    """Initial costs from the sum of stages; a stage without a cost there gets a hundredth of its maximum."""
    summed = non_negative_fit(matrix, seconds, 1.0 / seconds)
    with np.errstate(divide="ignore"):
        most = np.min(np.where(matrix > 0, seconds[:, None] / matrix, np.inf), axis=0)
    return np.asarray(np.maximum(summed, 0.01 * np.where(np.isfinite(most), most, 0.0)))


def _fitted(matrix: Floats, seconds: Floats, begin: Floats, norm: float, start: float | None = None) -> _NormFit:
    optimize = _library("scipy.optimize", "scipy", "norm of stage times")
    used = begin > 0
    chosen = matrix[:, used]

    def wrong(logs: Floats) -> Floats:
        return np.asarray((np.exp(logs[0]) + _norm(chosen * np.exp(logs[1:]), norm)) / seconds - 1.0)

    def slope(logs: Floats) -> Floats:
        parts = chosen * np.exp(logs[1:])
        total = _norm(parts, norm)
        each = np.where(total[:, None] > 0, (parts / np.maximum(total, 1e-300)[:, None]) ** (norm - 1) * parts, 0.0)
        return np.concatenate([np.full((len(seconds), 1), np.exp(logs[0])), each], axis=1) / seconds[:, None]

    start = max(1e-6, 0.2 * float(seconds.min()) if start is None else start)
    first = np.concatenate([[np.log(start)], np.log(begin[used])])
    # The solver retracts a step that overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        solution = optimize.least_squares(
            wrong, first, jac=slope, max_nfev=_STEPS, x_scale=1.0, loss="soft_l1", f_scale=0.2
        )
    costs = np.zeros(matrix.shape[1])
    costs[used] = np.exp(solution.x[1:])
    return max(float(solution.cost), 1e-300), norm, float(np.exp(solution.x[0])), costs


def _norm(parts: Floats, norm: float) -> Floats:
    largest = parts.max(axis=1)
    scaled = parts / np.maximum(largest, 1e-300)[:, None]
    return np.asarray(largest * (scaled**norm).sum(axis=1) ** (1 / norm))


# Boosted regression trees on the logarithm of the time per byte, stored as plain arrays.
#
# Trees are piecewise constant, so beyond the largest scale in training, they repeat its prediction.

_TREES: Final = 400
_DEPTH: Final = 4
_RATE: Final = 0.05
_TREE: Final = ("feature", "threshold", "left", "right", "value")
"""Columns of a tree: what each node compares, its children, and the time of a leaf."""


def _fit_trees(samples: Samples, _: Floats, known: Kinds) -> dict[str, Any]:
    """Train the trees with a fixed seed.

    Raises
    ------
    InputError
        scikit-learn is not installed.
    """
    ensemble = _library("sklearn.ensemble", "scikit-learn", "method trees")
    columns = described(samples, known)
    grown = ensemble.GradientBoostingRegressor(
        n_estimators=_TREES, max_depth=_DEPTH, learning_rate=_RATE, subsample=0.7, random_state=0
    ).fit(np.stack(list(columns.values()), axis=1), np.log(samples.seconds / _bytes(samples)))
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


def _predict_trees(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Evaluate all trees."""
    columns = described(samples, known)
    matrix = np.stack([columns[name] for name in parameters["names"]], axis=1).astype(np.float32)
    logs = np.full(len(samples), float(parameters["start"]))
    rows = np.arange(len(samples))
    for tree in parameters["trees"]:
        feature, threshold, left, right, value = (np.array(tree[name]) for name in _TREE)
        at = np.zeros(len(samples), dtype=np.int64)
        # Each step goes one level down, so the number of steps is at most the number of nodes.
        for _ in range(len(feature)):
            inner = left[at] >= 0
            if not inner.any():
                break
            goes_left = matrix[rows, feature[at]] <= threshold[at]
            at = np.where(inner, np.where(goes_left, left[at], right[at]), at)
        logs += value[at]
    return np.asarray(np.exp(logs) * _bytes(samples))


# Lasso over all subsets of training scales and a range of shrinkage, as Xie et al. search (section III-B).
#
# The Gram matrices of the scales add up, so the exact path of each subset is computed from matrices whose size
# depends only on the features. `lasso` minimises squared absolute errors, as published, which the longest writes
# dominate. `relative_lasso` minimises squared relative errors, so that a write of 5 seconds counts as much as one of
# 500. Both are validated on a part of the largest training scale, while the paper validates on a part of its test
# set.

MAX_SHRINKAGE: Final = 10.0
_MAX_SUBSETS: Final = 255
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
        what = "too few samples besides the validation samples, or samples that differ too much"
        raise InputError(what, where="Lasso", todo="measure more writes, or another --method")
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


def _predict_lasso(parameters: dict[str, Any], samples: Samples, known: Kinds) -> Floats:
    """Sum of intercept and terms, at least a thousandth of a second."""
    columns = linear_features(samples, known)
    seconds = _sum_of_terms(float(parameters["intercept"]), parameters["coefficients"], columns, len(samples))
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


def _held_out(scale: Floats) -> Flags:
    """A fifth of the largest scale, at least one sample."""
    largest = np.flatnonzero(scale == scale.max())
    chosen = np.random.default_rng(_SEED).permutation(largest)[: max(1, round(_VALIDATION * len(largest)))]
    held_out = np.zeros(len(scale), dtype=bool)
    held_out[chosen] = True
    return held_out


def _gram(matrix: Floats, seconds: Floats, weights: Floats, used: Flags) -> tuple[Floats, Floats, float]:
    weighted = matrix[used] * weights[used, None]
    return weighted.T @ weighted, weighted.T @ (seconds[used] * weights[used]), float(used.sum())


def _subsets(count: int) -> list[tuple[int, ...]]:
    """All non-empty subsets of scales; with many scales, only ranges of neighbours up to the largest."""
    if 2**count - 1 <= _MAX_SUBSETS:
        return [subset for size in range(1, count + 1) for subset in combinations(range(count), size)]
    return [tuple(range(first, count)) for first in range(count)]


def _path(gram: Floats, toward: Floats, count: float) -> list[tuple[float, Floats]]:
    """The exact path from shrinkage 10 to 0, at its corners; the intercept, column 0, is not shrunk."""
    linear_model = _library("sklearn.linear_model", "scikit-learn", "Lasso")
    # The intercept is eliminated first, since it is not shrunk.
    if gram[0, 0] <= 0:
        return []
    along = gram[0, 1:] / gram[0, 0]
    inner = gram[1:, 1:] - np.outer(along, gram[0, 1:])
    right = toward[1:] - along * toward[0]
    # scikit-learn fails on some collinear features of very different sizes: such a path is not known.
    with warnings.catch_warnings(), suppress(ValueError):
        # Collinear features are dropped, or end the path; the path up to there is exact.
        warnings.simplefilter("ignore")
        alphas, _, paths = linear_model.lars_path_gram(
            right, inner, n_samples=round(count), alpha_min=0.0, method="lasso", max_iter=4 * len(right), eps=1e-9
        )
        return [
            (float(shrinkage), np.concatenate([[toward[0] / gram[0, 0] - along @ coefficients], coefficients]))
            for shrinkage, coefficients in zip(alphas, paths.T, strict=True)
            if shrinkage <= MAX_SHRINKAGE
        ]
    return []


METHODS: Final = {
    "mean": Method(_fit_mean, _predict_mean),
    "nearest": Method(_fit_nearest, _predict_nearest),
    "log_linear": Method(_fit_powers, _predict_powers),
    "stage_sum": Method(_fit_sum, _predict_sum, _refit_sum),
    "bottleneck": Method(_fit_norm, _predict_norm, _refit_norm),
    "trees": Method(_fit_trees, _predict_trees),
    "lasso": Method(partial(search, relative=False), _predict_lasso, partial(_shrunk, relative=False)),
    "relative_lasso": Method(partial(search, relative=True), _predict_lasso, partial(_shrunk, relative=True)),
}
"""All methods by name, plain ones first, in the order of tables."""
