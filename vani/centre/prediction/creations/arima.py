"""ARIMA, with which Tarazu predicts sizes (section 5.5.1): the sizes of all creations form one time series.

The paper gives neither order nor season. The order is the one with the least AIC, and the season is the period of
the series. A series that is constant, too short, or not fitted by any order in time is continued by its last value.
A series that is constant after seasonal differences, to which no ARIMA can be fitted either, repeats its last
season. Within a step, which is the nth creation of each rank, the series is in order of ranks, so that differences
between ranks form a season.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vani.centre.prediction.creations.laws import expected_ranks, lag_of
from vani.centre.prediction.creations.series import Creations, Floats, Foreseen, nth_of_rank, of_sizes
from vani.errors import InputError

_LEAST: Final = 8
_SAMPLES: Final = 240
"""Number of latest samples to which orders are fitted; the cost of a fit grows with it."""
_MAX_SEASON: Final = 32
_SECONDS: Final = 1.0
"""Time in seconds after which no further order is tried."""
_ITERATIONS: Final = 30
_AHEAD: Final = 4096
"""Number of forecasts beyond which the last one is repeated."""
_ORDERS: Final = (
    (0, 1, 1), (0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 0), (2, 0, 0), (2, 1, 1), (2, 1, 2),
)  # fmt: skip
_SEASONAL: Final = ((0, 0, 0), (0, 1, 0), (1, 0, 0))


def arima(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Fit to the latest samples of past runs and of the beginning of the current one, and forecast."""
    ranks = expected_ranks(past, so_far, count)
    runs = [run.values[np.lexsort((run.ranks, run.nth))] for run in (*past[-16:], so_far)]
    series = np.concatenate(runs)[-_SAMPLES:]
    if not len(ranks) or not len(series):
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    ahead, words = _forecast(series, len(ranks))
    sizes = np.empty(len(ranks))
    sizes[np.lexsort((ranks, nth_of_rank(ranks, so_far)))] = ahead
    return Foreseen(sizes, ranks, words)


def _forecast(series: Floats, count: int) -> tuple[Floats, str]:
    last = np.full(count, series[-1])
    if len(series) < _LEAST:
        return last, "too short: last value used"
    scale = float(series.std())
    if scale <= 1e-12 * max(1.0, float(np.abs(series).max())):
        return last, "constant: last value used"
    scaled = (series - series.mean()) / scale
    law = lag_of(of_sizes(series.astype(np.int64).tolist()))
    season = law.lag if 1 < law.lag <= _MAX_SEASON and law.share > 0 and len(series) >= 2 * law.lag + 4 else 0
    if season and not np.ptp(scaled[season:] - scaled[:-season]) > 1e-9:
        return np.resize(series[-season:], count), f"constant seasons: last {season}"
    best = _least_aic(scaled, season)
    if best is None:
        return last, "no order fits: last value used"
    model, order, seasonal = best
    steps = min(count, _AHEAD)
    ahead = np.asarray(model.forecast(steps)) * scale + series.mean()
    sizes = np.r_[ahead, np.full(count - steps, ahead[-1])]
    sizes = np.where(np.isfinite(sizes), np.maximum(sizes, 0.0), series[-1])
    words = f"ARIMA{order}" + (f"{seasonal}[{season}]" if any(seasonal) else "")
    return sizes, words.replace(" ", "")


def _least_aic(series: Floats, season: int) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    try:
        from statsmodels.tsa.arima.model import ARIMA  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError("needs statsmodels", where="arima", todo="pip install 'vani-io[centre]'") from None

    began, best, least = time.perf_counter(), None, np.inf
    for seasonal in _SEASONAL if season else _SEASONAL[:1]:
        for order in _ORDERS:
            if time.perf_counter() - began > _SECONDS:
                return best
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    of_season = (*seasonal, season) if any(seasonal) else (0, 0, 0, 0)
                    free = {"enforce_stationarity": False, "enforce_invertibility": False}
                    model = ARIMA(series, order=order, seasonal_order=of_season, **free)
                    model = model.fit(method_kwargs={"maxiter": _ITERATIONS, "disp": 0})
            except (ValueError, np.linalg.LinAlgError, IndexError):
                continue
            if np.isfinite(model.aic) and model.aic < least:
                best, least = (model, order, seasonal), model.aic
    return best
