"""The distribution of a data set's values (table VI): a bounded sample of them, fitted and tested.

The sample is stratified: the values of all arrays, in order, are divided into as many equal parts as
values are wanted, and one value is taken from each part at random. The sample is then shuffled and halved. Each
distribution is fitted to the first half by maximum likelihood, and the one with the smallest Bayesian information
criterion is chosen, or a simpler one that is as good. Its distance from the second half, which had no part in this, is
the Kolmogorov-Smirnov statistic. The distribution fits if its distance is at most `ENOUGH`, or if the test
does not reject it at 5 %.

Integers are spread evenly over the unit above them, because the distributions are continuous. Gamma, lognormal and
exponential start at 0.

Sources: Massey, "The Kolmogorov-Smirnov Test for Goodness of Fit" (1951); Schwarz, "Estimating the Dimension of a
Model" (1978); Kass and Raftery, "Bayes Factors" (1995), section 3.2. SciPy does the fitting and testing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.collect.arrays import Array
from vani.schema.dataset_facts import Distribution

Floats = NDArray[np.float64]
Law = Literal["uniform", "normal", "lognormal", "exponential", "gamma"]

ENOUGH: Final = 0.05
"""Largest distance at which a distribution still describes the values: real data follows none exactly, and with enough
values a test rejects any."""
FEWEST: Final = 200
"""With fewer values, a test rejects almost nothing."""
_STRONG: Final = 10.0
"""Difference of the criterion above which it speaks very strongly for a distribution (Kass and Raftery); below, the
simpler one is taken: for gamma and lognormal values far from 0, a normal distribution is as good."""
_SIMPLEST_FIRST: Final[tuple[Law, ...]] = ("uniform", "normal", "exponential", "gamma", "lognormal")
_SEED: Final = 20_260_101
"""The same data set gives the same sample."""
_TEST: Final = (
    "Kolmogorov-Smirnov test on the half of the values that was not used for the fit; "
    f"a law fits up to a statistic of {ENOUGH}, or with a p-value of at least 0.05"
)


@dataclass(frozen=True)
class Drawn:
    """A sample of values in random order."""

    values: Floats
    files: int
    """Number of files from which they come."""
    problems: list[str]


def draw(arrays: Sequence[tuple[Path, Array]], wanted: int, seconds: float) -> Drawn:
    """Draw `wanted` values from the arrays, from each in proportion to its number of values."""
    random = np.random.default_rng(_SEED)
    ends_at = time.monotonic() + seconds
    counts = np.array([array.count for _, array in arrays], dtype=np.int64)
    behind = np.cumsum(counts)
    total = int(behind[-1]) if len(behind) else 0
    if total <= wanted:
        places = np.arange(total)
    else:
        edges = np.linspace(0, total, wanted + 1)
        places = np.minimum(edges[:-1] + random.random(wanted) * np.diff(edges), total - 1).astype(np.int64)
    file = np.searchsorted(behind, places, side="right")
    samples, files, problems = [np.empty(0)], 0, []
    # In random order: if time runs out, the files read are a random sample.
    for index in random.permutation(np.unique(file)).tolist():
        if time.monotonic() > ends_at:
            break
        path, array = arrays[index]
        try:
            values = array.read(places[file == index] - (behind[index] - counts[index]), ends_at)
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {error}")
            continue
        values = values[np.isfinite(values)]
        files += bool(len(values))
        samples.append(values)
    values = random.permutation(np.concatenate(samples))
    if time.monotonic() > ends_at:
        problems.append(
            f"after {seconds:g} s, {len(values):,} of {len(places):,} values of the sample were read"
        )
    return Drawn(values, files, problems)


def law_of(drawn: Drawn) -> Distribution | str:
    """Fit and test the distributions; a sentence if that is impossible."""
    values = drawn.values
    if len(values) < FEWEST:
        return f"{len(values)} values were read, fewer than the {FEWEST} that a test needs"
    size = {"values": len(values), "files": drawn.files}
    if values.min() == values.max():
        same = {"value": float(values[0])}
        return Distribution(
            name="constant", closest="constant", parameters=same, test="all values are equal", **size
        )
    try:
        from scipy import stats  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        return "scipy is not installed (pip install 'vani-io[collect]')"
    counted = bool((values == np.rint(values)).all())
    if counted:
        values = values + np.random.default_rng(_SEED).random(len(values))
    known, unseen = values[::2], values[1::2]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        fitted = {}
        for law, fit in _candidates(values).items():
            # If values differ by almost nothing, a distribution may have no best fit.
            with suppress(ValueError, RuntimeError, FloatingPointError, OverflowError):
                fitted[law] = fit(stats, known)
        scores = {law: _score(law_fitted, known) for law, law_fitted in fitted.items()}
        usable = {law: score for law, score in scores.items() if np.isfinite(score)}
        if not usable:
            return "no distribution can be fitted to the values"
        best = min(usable.values())
        closest = next(law for law in _SIMPLEST_FIRST if usable.get(law, np.inf) <= best + _STRONG)
        tested = stats.kstest(unseen, fitted[closest].cdf)
    distance, p_value = float(tested.statistic), float(tested.pvalue)
    fits = distance <= ENOUGH or p_value >= 0.05
    return Distribution(
        name=closest if fits else None,
        closest=closest,
        parameters=_parameters(closest, fitted[closest], counted=counted),
        test=_TEST,
        statistic=distance,
        p_value=p_value,
        **size,
    )


def _candidates(values: Floats) -> dict[Law, Callable[[Any, Floats], Any]]:
    """Distributions that may have such values, each with SciPy's fit."""
    laws: dict[Law, Callable[[Any, Floats], Any]] = {
        "uniform": lambda stats, x: stats.uniform(*stats.uniform.fit(x)),
        "normal": lambda stats, x: stats.norm(*stats.norm.fit(x)),
    }
    if values.min() >= 0:
        laws["exponential"] = lambda stats, x: stats.expon(*stats.expon.fit(x, floc=0))
    if values.min() > 0:
        laws["lognormal"] = lambda stats, x: stats.lognorm(*stats.lognorm.fit(x, floc=0))
        laws["gamma"] = lambda stats, x: stats.gamma(*stats.gamma.fit(x, floc=0))
    return laws


def _score(law: Any, values: Floats) -> float:
    """Bayesian information criterion: the exponential distribution has one parameter, the others two."""
    free = 1 if law.dist.name == "expon" else 2
    return free * float(np.log(len(values))) - 2 * float(law.logpdf(values).sum())


def _parameters(name: Law, law: Any, *, counted: bool) -> dict[str, float]:
    """Parameters of the distribution under their usual names; location and bounds without the spread of integers."""
    *shape, at, scale = (float(value) for value in law.args)
    low, high = (float(np.floor(bound)) if counted else bound for bound in (at, at + scale))
    parameters = {
        "uniform": {"low": low, "high": high},
        "normal": {"mean": at - (0.5 if counted else 0.0), "standard_deviation": scale},
        "exponential": {"mean": scale},
        "lognormal": {"log_mean": float(np.log(scale)), "log_standard_deviation": shape[0] if shape else 0.0},
        "gamma": {"shape": shape[0] if shape else 0.0, "scale": scale},
    }
    return parameters[name]
