"""Predictors of the files that a run creates; plain ones come first, also in ties."""

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.prediction.creations import laws, series
from vani.errors import InputError


@dataclass(frozen=True)
class Predictor:
    """A method to predict creations.

    Attributes
    ----------
    predict
        Called with the past runs (the oldest first), the beginning of the run that follows them, and the number of
        creations wanted (None: all until the end of the run); returns the creations after that beginning. Past runs
        or beginning may be empty, but not both.
    costly
        Whether it takes long; such predictors are tried only if the others do badly.
    """

    predict: Callable[[Sequence[series.Creations], series.Creations, int | None], series.Foreseen]
    costly: bool = False


def _unknown(ranks: Ints) -> series.Foreseen:
    return series.Foreseen(np.full(len(ranks), np.nan), ranks)


def _last_value(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    ranks = laws.expected_ranks(past, so_far, count)
    last = next((run.values[-1] for run in (so_far, *reversed(past)) if len(run)), np.nan)
    return series.Foreseen(np.full(len(ranks), last), ranks)


def _last_period(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Find the period of the last run and of the current one, and continue it."""
    ranks = laws.expected_ranks(past, so_far, count)
    known = series.joined([*past[-1:], so_far])
    if not len(known):
        return _unknown(ranks)
    law = laws.lag_of(known)
    each = " by rank" if law.by_rank else ""
    return series.Foreseen(laws.continued(known, ranks, law), ranks, f"period {law.lag}{each}")


def _steady_growth(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Continue the current run; before its first creation, continue from the end of the last run."""
    ranks = laws.expected_ranks(past, so_far, count)
    known = so_far if len(so_far) or not past else past[-1]
    law = max(laws.laws(known, ("factor", "step")), key=lambda law: law.share) if len(known) else None
    if law is None or law.share < 0:
        return _unknown(ranks)
    return series.Foreseen(laws.continued(known, ranks, law), ranks, f"by a constant {law.kind}, period {law.lag}")


def _same_position(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Repeat the same creation of the same rank in the previous run; beyond its end, repeat its last period."""
    ranks = laws.expected_ranks(past, so_far, count)
    if not past or not len(past[-1]):
        return _unknown(ranks)
    last = past[-1]
    sizes = last.at(ranks, series.nth_of_rank(ranks, so_far))
    beyond = np.isnan(sizes)
    if beyond.any():
        sizes[beyond] = laws.continued(last, ranks[beyond], laws.lag_of(last))
    return series.Foreseen(sizes, ranks)


# Laws between successive runs: equal, alternating, larger by a constant factor or step, longer.
#
# The beginning of a run that has started shows which earlier run or which law it follows, and by which factor it is
# larger.

_LAW_RUNS: Final = 8
"""Number of latest runs in which a law is sought."""
_SEEN: Final = 4096
"""Number of latest creations by which the beginning of a run is recognised."""


def _run_law(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Apply the law that fitted the last runs best, or that fits the run that has started."""
    ranks = laws.expected_ranks(past, so_far, count)
    runs = [run for run in past[-_LAW_RUNS:] if len(run)]
    if not runs:
        return _unknown(ranks)
    nth = series.nth_of_rank(ranks, so_far)
    law, _, _ = laws.best_law(_rows(runs, runs[-1].ranks, runs[-1].nth))
    if not len(so_far):
        sizes, words = law.follow(_rows(runs, ranks, nth)), law.name
    else:
        sizes, words = _recognised(runs, so_far, ranks, nth)
    sizes = _beyond(sizes, runs, so_far, ranks)
    longer = "" if count is not None or len(past) < 2 else laws.expected_count(past)[1]
    return series.Foreseen(sizes, ranks, words + (f", number {longer}" if longer not in ("", "equal") else ""))


def _rows(runs: Sequence[series.Creations], ranks: Ints, nth: Ints) -> list[Floats]:
    return [run.at(ranks, nth) for run in runs]


def _recognised(
    runs: Sequence[series.Creations], so_far: series.Creations, ranks: Ints, nth: Ints
) -> tuple[Floats, str]:
    """Sizes according to the best match of the beginning: a past run or the law, as it is or scaled by a factor."""
    cut = max(0, len(so_far) - _SEEN)
    seen, came = so_far.ranks[cut:], so_far.values[cut:]
    best, best_fit = (np.full(len(ranks), np.nan), ""), -1.0
    for name, behind, ahead in _models(runs, (seen, so_far.nth[cut:]), (ranks, nth)):
        factor = _factor(came, behind, 64)
        for scale, words in ((1.0, name), (factor, f"{name} x {factor:.4g}")):
            fit = float(series.is_right(behind * scale, came).mean())
            if fit > best_fit + 1e-9:
                best, best_fit = (ahead * scale, words), fit
    return best


def _factor(sizes: Floats, before: Floats, latest: int = 0) -> float:
    """The median factor of the latest sizes (0: of all) over those before; 1 if none is known."""
    with np.errstate(all="ignore"):
        ratios = sizes / before
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)][-latest:]
    return float(np.median(ratios)) if len(ratios) else 1.0


def _models(
    runs: Sequence[series.Creations], seen: tuple[Ints, Ints], wanted: tuple[Ints, Ints]
) -> Iterator[tuple[str, Floats, Floats]]:
    behind, ahead = _rows(runs, *seen), _rows(runs, *wanted)
    law, _, _ = laws.best_law(behind)
    yield law.name, law.follow(behind), law.follow(ahead)
    for back in range(1, len(runs) + 1):
        yield f"as {back} runs before" if back > 1 else "as in the previous run", behind[-back], ahead[-back]


def _beyond(
    sizes: Floats, runs: Sequence[series.Creations], so_far: series.Creations, ranks: Ints
) -> Floats:
    """Fill in what no earlier run had: the longest run, which may be the current one, continues by its own law."""
    gaps = np.isnan(sizes)
    if not gaps.any():
        return sizes
    known = max(runs[-2:], key=len)
    filled = sizes.copy()
    law = max(laws.laws(known), key=lambda law: law.share)
    if law.share < 0:
        return sizes
    longest = known if len(so_far) <= len(known) else so_far
    going_on = laws.continued(longest, ranks[gaps], law)
    # If this run is larger than that one by a factor, so are its later creations.
    last = np.flatnonzero(~gaps)
    if len(last) and len(so_far) <= len(known):
        before = known.at(ranks[last], series.nth_of_rank(ranks, so_far)[last])
        going_on = going_on * _factor(sizes[last], before)
    filled[gaps] = going_on
    return filled


_MAX_ORDER: Final = 3
_REMEMBERED: Final = 20_000
"""Number of latest creations from which a chain is counted."""
_MAX_STEPS: Final = 200_000
_UNKNOWN: Final = -1
_BEFORE_FIRST: Final = -3
"""State in which rank 0 starts; other ranks start below."""

Context = tuple[int, ...]


def _markov(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Count which size followed which, then take the most frequent transitions."""
    ranks = laws.expected_ranks(past, so_far, count)
    runs, left = [so_far.part(max(0, len(so_far) - _REMEMBERED), None)] if len(so_far) else [], _REMEMBERED
    for run in reversed(past):
        left -= len(runs[0]) if runs else 0
        if left <= 0:
            break
        runs.insert(0, run.first(left))
    levels, states = _states(runs)
    by_rank = map(_by_rank, runs, states)
    follows = _counted([chain for chains in by_rank for chain in chains.values()])
    last = _by_rank(so_far, states[-1]) if len(so_far) else {}
    latest = {rank: chain[-_MAX_ORDER:] for rank, chain in last.items()}
    return series.Foreseen(_followed(ranks, latest, follows, levels), ranks, f"{len(levels)} sizes")


def _states(runs: Sequence[series.Creations]) -> tuple[Floats, list[Ints]]:
    """The level of each state and the state of each creation; sizes within 1 % of each other form one state."""
    if not runs:
        return np.zeros(0), []
    every = np.concatenate([run.values for run in runs])
    values = np.unique(every)
    group = np.zeros(len(values), dtype=np.int64)
    first, number = (float(values[0]), 0) if len(values) else (0.0, 0)
    for at, value in enumerate(values.tolist()):
        if value - first > series.WITHIN * value:
            first, number = value, number + 1
        group[at] = number
    # The middle value represents a group.
    starts = np.searchsorted(group, np.arange(number + 1)) if len(values) else np.zeros(0, np.int64)
    ends = np.r_[starts[1:], len(values)] if len(values) else starts
    levels = values[(starts + ends - 1) // 2]
    states = group[np.searchsorted(values, every)] if len(values) else group
    return levels, np.split(states, np.cumsum([len(run) for run in runs])[:-1])


def _by_rank(run: series.Creations, states: Ints) -> dict[int, list[int]]:
    places = series.places_by_rank(run.ranks)
    return {rank: [_BEFORE_FIRST - rank, *states[own].tolist()] for rank, own in places.items()}


def _counted(chains: Sequence[list[int]]) -> dict[Context, int]:
    """The most frequent successor of each context of up to three states."""
    counts: dict[Context, Counter[int]] = defaultdict(Counter)
    for chain in chains:
        for at in range(1, len(chain)):
            for order in range(1, min(_MAX_ORDER, at) + 1):
                counts[tuple(chain[at - order : at])][chain[at]] += 1
    return {context: followers.most_common(1)[0][0] for context, followers in counts.items()}


def _followed(
    ranks: Ints, latest: dict[int, list[int]], follows: dict[Context, int], levels: Floats
) -> Floats:
    sizes = np.full(len(ranks), np.nan)
    steps = 0
    for rank, places in series.places_by_rank(ranks).items():
        chain = list(latest.get(rank, [_BEFORE_FIRST - rank]))
        context = tuple(chain[-_MAX_ORDER:])
        walked: list[int] = []
        met: dict[Context, int] = {}
        while len(walked) < len(places) and steps < _MAX_STEPS:
            if context in met:
                # The chain is deterministic, so a context that recurs starts a cycle.
                begin = met[context]
                walked[begin:] = np.resize(np.array(walked[begin:]), len(places) - begin).tolist()
                break
            met[context] = len(walked)
            state = _next(context, follows)
            if state == _UNKNOWN:
                break
            walked.append(state)
            context = (*context, state)[-_MAX_ORDER:]
            steps += 1
        path = np.array(walked, dtype=np.int64)
        sizes[places[: len(path)]] = levels[path]
    return sizes


def _next(context: Context, follows: dict[Context, int]) -> int:
    for order in range(len(context), 0, -1):
        state = follows.get(context[-order:])
        if state is not None:
            return state
    return _UNKNOWN


# ARIMA, with which Tarazu predicts sizes (section 5.5.1): the sizes of all creations form one time series.
#
# The paper gives neither order nor season. The order is the one with the least AIC, and the season is the period of
# the series. A series that is constant, too short, or not fitted by any order in time is continued by its last value.
# A series that is constant after seasonal differences, to which no ARIMA can be fitted either, repeats its last
# season. Within a step, which is the nth creation of each rank, the series is in order of ranks, so that differences
# between ranks form a season.

_LEAST: Final = 8
_SAMPLES: Final = 240
"""Number of latest samples to which orders are fitted; the cost of a fit grows with it."""
_MAX_SEASON: Final = 32
_ORDER_S: Final = 1.0
"""Time in seconds after which no further order is tried."""
_ITERATIONS: Final = 30
_FORECASTS: Final = 4096
"""Number of forecasts beyond which the last one is repeated."""
_ORDERS: Final = (
    (0, 1, 1), (0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 0), (2, 0, 0), (2, 1, 1), (2, 1, 2),
)  # fmt: skip
_SEASONAL: Final = ((0, 0, 0), (0, 1, 0), (1, 0, 0))


def arima(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> series.Foreseen:
    """Fit to the latest samples of past runs and of the beginning of the current one, and forecast."""
    ranks = laws.expected_ranks(past, so_far, count)
    runs = [run.values[np.lexsort((run.ranks, run.nth))] for run in (*past[-16:], so_far)]
    samples = np.concatenate(runs)[-_SAMPLES:]
    if not len(ranks) or not len(samples):
        return series.Foreseen(np.full(len(ranks), np.nan), ranks)
    ahead, words = _forecast(samples, len(ranks))
    sizes = np.empty(len(ranks))
    sizes[np.lexsort((ranks, series.nth_of_rank(ranks, so_far)))] = ahead
    return series.Foreseen(sizes, ranks, words)


def _forecast(samples: Floats, count: int) -> tuple[Floats, str]:
    last = np.full(count, samples[-1])
    if len(samples) < _LEAST:
        return last, "too short: last value used"
    scale = float(samples.std())
    if scale <= 1e-12 * max(1.0, float(np.abs(samples).max())):
        return last, "constant: last value used"
    scaled = (samples - samples.mean()) / scale
    law = laws.lag_of(series.of_sizes(samples.astype(np.int64).tolist()))
    season = law.lag if 1 < law.lag <= _MAX_SEASON and law.share > 0 and len(samples) >= 2 * law.lag + 4 else 0
    if season and not np.ptp(scaled[season:] - scaled[:-season]) > 1e-9:
        return np.resize(samples[-season:], count), f"constant seasons: last {season}"
    best = _least_aic(scaled, season)
    if best is None:
        return last, "no order fits: last value used"
    model, order, seasonal = best
    steps = min(count, _FORECASTS)
    ahead = np.asarray(model.forecast(steps)) * scale + samples.mean()
    sizes = np.r_[ahead, np.full(count - steps, ahead[-1])]
    sizes = np.where(np.isfinite(sizes), np.maximum(sizes, 0.0), samples[-1])
    words = f"ARIMA{order}" + (f"{seasonal}[{season}]" if any(seasonal) else "")
    return sizes, words.replace(" ", "")


def _least_aic(samples: Floats, season: int) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    try:
        from statsmodels.tsa.arima.model import ARIMA  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError("needs statsmodels", where="arima", todo="pip install 'vani-io[centre]'") from None

    began, best, least = time.perf_counter(), None, np.inf
    for seasonal in _SEASONAL if season else _SEASONAL[:1]:
        for order in _ORDERS:
            if time.perf_counter() - began > _ORDER_S:
                return best
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    of_season = (*seasonal, season) if any(seasonal) else (0, 0, 0, 0)
                    free = {"enforce_stationarity": False, "enforce_invertibility": False}
                    model = ARIMA(samples, order=order, seasonal_order=of_season, **free)
                    model = model.fit(method_kwargs={"maxiter": _ITERATIONS, "disp": 0})
            except (ValueError, np.linalg.LinAlgError, IndexError):
                continue
            if np.isfinite(model.aic) and model.aic < least:
                best, least = (model, order, seasonal), model.aic
    return best


PREDICTORS: Final = {
    "last_value": Predictor(_last_value),
    "last_period": Predictor(_last_period),
    "steady_growth": Predictor(_steady_growth),
    "same_position": Predictor(_same_position),
    "run_law": Predictor(_run_law),
    "markov": Predictor(_markov),
    "arima": Predictor(arima, costly=True),
}
"""By name; plain ones come first, also in ties."""
