"""Which setting to run next, and what the runs show.

Both follow from the runs alone, so an interrupted session continues where it stopped. After a run without settings,
each candidate is added to the best combination so far and stays if it makes that faster. The rest of the budget
alternates between no settings and the best. The session ends after the first run if even removing all I/O would gain
too little. A candidate is left out if `Tuned.later_runs` runs with it are not expected to save the cost of its trial.

Deciding on the runs that also selected the best favours it. The error rate is therefore divided by the number of
tried settings and of possible decisions (Bonferroni), so the probability of calling a setting without effect proven
stays below `ERROR_RATE`.

Run-to-run noise is relative, so logarithms of times are compared. Student's test with a common variance needs fewer
runs than Welch's, which can hardly decide anything with two runs each; it is exact if the logarithms are normal. With
two runs each, no permutation test reaches an error rate below 1 in 6.

Before a setting is tried, the logarithm of its speed-up is assumed normal, with the median and 80 % range of the
recommendation's own estimate. Recommendations without a number all get the same wide range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from vani.models.measured_gain import noise_of
from vani.schema.tuned import LEAST_GAIN, Candidate, NotTried, Result, Tuned, TunedRun
from vani.units import counted, format_number


@dataclass(frozen=True)
class Comparison:
    """The speed-up and its confidence interval. The ends are None if one setting ran only once."""

    speedup: float
    low: float | None
    high: float | None


def compare(before: Sequence[float], after: Sequence[float], error_rate: float) -> Comparison:
    """Compare run times in seconds. Each end of the interval is wrong with probability `error_rate`.

    Raises
    ------
    ImportError
        scipy is not installed.
    """
    logs = [[math.log(max(value, 1e-9)) for value in times] for times in (before, after)]
    difference = sum(logs[0]) / len(before) - sum(logs[1]) / len(after)
    if min(len(before), len(after)) < 2:
        return Comparison(math.exp(difference), None, None)
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to load

    # Not scipy's own test: it warns if all runs of a setting took equally long, as with a clock of whole seconds.
    freedom = len(before) + len(after) - 2
    squares = sum((value - sum(values) / len(values)) ** 2 for values in logs for value in values)
    deviation = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    reach = deviation * float(stdtrit(freedom, 1 - error_rate))
    return Comparison(math.exp(difference), math.exp(difference - reach), math.exp(difference + reach))


FASTER: Final = (0.9, 1.1, 1.35)
"""Low end, median and high end (80 %) of the speed-up if a recommendation expects one without a number (our choice)."""
UNKNOWN: Final = (0.8, 1.0, 1.25)
"""The same range for a recommendation that does not expect a faster run (our choice)."""
_HIGHEST: Final = 0.95
"""Largest share of a run that can be saved, even if a recommendation for a run of another size expects more."""
_DEVIATIONS: Final = 2 * NormalDist().inv_cdf(0.9)
"""Width of an 80 % range in standard deviations."""


def expected_saving(candidate: Candidate, seconds: float, most_s: float | None) -> float:
    """Mean share of a run that trying a setting saves. A setting that turns out slower is dropped and saves nothing.

    Parameters
    ----------
    seconds
        Time of a run without settings.
    most_s
        Most time that can be saved; None if unknown.
    """
    cap = _HIGHEST if most_s is None else min(_HIGHEST, most_s / seconds)
    low, median, high = _speedups(candidate, seconds)
    centre, width = math.log(median), max(math.log(high / low) / _DEVIATIONS, 1e-6)
    below = NormalDist(centre, width).cdf
    # Mean of 1 - 1/speedup between 0 and the cap, plus the cap above it, like the price of a call option.
    end = -math.log1p(-cap)
    shifted = NormalDist(centre - width**2, width).cdf
    inside = below(end) - below(0) - math.exp(width**2 / 2 - centre) * (shifted(end) - shifted(0))
    return max(0.0, inside + cap * (1 - below(end)))


def _speedups(candidate: Candidate, seconds: float) -> tuple[float, float, float]:
    if candidate.saves_s is None:
        return FASTER if candidate.is_faster else UNKNOWN
    low, median, high = (1 / (1 - min(_HIGHEST, saved / seconds)) for saved in candidate.saves_s)
    return low, median, high


ERROR_RATE: Final = 0.05
"""Share of sessions without any real effect that may call a setting proven."""
_MAX_RUNS: Final = 100
"""Most runs for a budget in seconds with a very short program."""
_REPEATED: Final = 3
"""Runs that do not explore: the first without settings, and a repetition of it and of the best."""

Combination = tuple[int, ...]


def number_of_runs(tuned: Tuned) -> int | None:
    """Number of runs that the budget allows; None until a run without settings shows how long one takes."""
    limits = [] if tuned.most_runs is None else [tuned.most_runs]
    most_seconds = _most_seconds(tuned)
    if most_seconds is not None:
        first = _first(tuned, ())
        if first is None:
            return None
        limits.append(min(_MAX_RUNS, max(1, int(most_seconds / max(first, 1e-3)))))
    return min(limits, default=_MAX_RUNS)


def not_worth_a_run(tuned: Tuned) -> list[NotTried]:
    """Candidates left out because later runs are not expected to save the cost of trying them."""
    first = _first(tuned, ())
    if first is None or _has_nothing_to_gain(tuned):
        return []
    left_out = []
    for candidate in tuned.candidates:
        saved = _expected_saving(tuned, candidate)
        if saved * tuned.later_runs < 1:
            why = (
                f"{candidate.setting.label} is expected to save {format_number(saved * first, 2)} s "
                f"of {format_number(first)} s: {tuned.later_runs} later runs (--later-runs) do not repay the "
                "run that tries it"
            )
            left_out.append(NotTried(rule=candidate.rule, why=why))
    return left_out


def next_candidates(tuned: Tuned) -> list[int] | None:
    """Indices of the candidates for the next run, empty for no settings; None if the session is over."""
    as_is = _seconds(tuned, ())
    if _has_failed(tuned, ()):
        return None
    if not as_is:
        return []
    most = number_of_runs(tuned) or 1
    if len(_counted(tuned)) >= most or _is_spent(tuned) or _has_nothing_to_gain(tuned):
        return None
    explored, helped, wanted = _exploration(tuned, most)
    if wanted is not None:
        return list(wanted)
    best = _best(tuned, helped)
    if best is None:
        # A second run shows the noise, and whether the first was fast by chance.
        return [] if len(as_is) < 2 and explored else None
    times = _seconds(tuned, best)
    if len(as_is) == len(times) >= 2 and _is_proven(tuned, best, explored, most):
        return None
    if len(as_is) > len(times):
        return list(best)
    # An incomplete pair decides nothing.
    return [] if most - len(_counted(tuned)) >= 2 + len(as_is) - len(times) else None


def result_of(tuned: Tuned) -> Result:
    """The result of a session, finished or so far."""
    as_is = _seconds(tuned, ())
    if _has_failed(tuned, ()):
        failed = next(run for run in tuned.runs if not run.candidates and run.outcome in _FAILED)
        return Result(
            verdict="unfinished", why=f"run {failed.number}, without a setting: {failed.remark}", candidates=[]
        )
    if not as_is:
        return Result(verdict="unfinished", why="no run has finished", candidates=[])
    if _has_nothing_to_gain(tuned):
        first, gain = as_is[0], tuned.most_gain or 0.0
        why = (
            f"I/O takes {format_number(gain * first, 2)} s of {format_number(first)} s at most; without any, "
            f"the run would be {1 / (1 - gain):.3f} times as fast"
        )
        return Result(verdict="nothing_to_gain", why=why, candidates=[], as_is_runs=len(as_is))
    most = number_of_runs(tuned) or 1
    explored, helped, _ = _exploration(tuned, most)
    best = _best(tuned, helped)
    noise = noise_of([as_is, *(_seconds(tuned, item) for item in explored)])
    if best is None:
        if not explored:
            if not tuned.candidates:
                why = "the advice has no setting outside the program"
            elif not _worth_trying(tuned):
                why = "no setting is expected to save enough to be worth a run"
            else:
                why = "the budget allowed no setting to be tried"
                return Result(verdict="unfinished", why=why, candidates=[])
            return Result(verdict="nothing_helps", why=why, candidates=[], as_is_runs=len(as_is))
        tried = counted(len(explored), "setting")
        why = f"{tried} tried, none at least {100 * LEAST_GAIN:.0f} % faster than without settings"
        return Result(verdict="nothing_helps", why=why, candidates=[], noise=noise, as_is_runs=len(as_is))
    times = _seconds(tuned, best)
    comparison = compare(as_is, times, _error_rate(len(explored), most))
    # Decide only after equally many runs of both, as next_candidates() plans them.
    is_decided = len(as_is) == len(times) >= 2
    is_proven = is_decided and comparison.low is not None and comparison.low > 1
    if is_proven:
        why = f"faster than without settings in {len(times)} runs each"
    elif len(as_is) < 2 or len(times) < 2:
        why = "too few runs: each must run twice, which needs a budget of at least 4"
    else:
        why = "the noise is too large or the difference too small: a larger budget may decide"
    return Result(
        verdict="proven" if is_proven else "not_proven",
        why=why,
        candidates=list(best),
        speedup=comparison.speedup,
        low=comparison.low,
        high=comparison.high,
        confidence=None if comparison.low is None else 1 - 2 * _error_rate(len(explored), most),
        noise=noise,
        as_is_runs=len(as_is),
        best_runs=len(times),
        io_speedup=_io_speedup(tuned, best),
    )


_FAILED: Final = ("failed", "not_verified", "not_applied", "too_slow")


def _counted(tuned: Tuned) -> list[TunedRun]:
    return [run for run in tuned.runs if run.outcome != "interrupted"]


def _seconds(tuned: Tuned, candidates: Combination) -> list[float]:
    return [
        run.seconds
        for run in tuned.runs
        if run.outcome == "ended" and tuple(run.candidates) == candidates and run.seconds is not None
    ]


def _first(tuned: Tuned, candidates: Combination) -> float | None:
    return next(iter(_seconds(tuned, candidates)), None)


def _has_failed(tuned: Tuned, candidates: Combination) -> bool:
    return any(run.outcome in _FAILED and tuple(run.candidates) == candidates for run in tuned.runs)


def _most_seconds(tuned: Tuned) -> float | None:
    """Seconds of runs that the budget allows; None if it is in runs, or the number of nodes is unknown."""
    limits = [] if tuned.most_seconds is None else [tuned.most_seconds]
    if tuned.most_node_hours is not None and tuned.nodes:
        limits.append(tuned.most_node_hours * 3600 / tuned.nodes)
    return min(limits, default=None)


def _is_spent(tuned: Tuned) -> bool:
    """True if another run without settings would exceed a budget in seconds."""
    most_seconds = _most_seconds(tuned)
    if most_seconds is None:
        return False
    used = sum(run.seconds or 0 for run in tuned.runs)
    return used + (_first(tuned, ()) or 0) > most_seconds


def _has_nothing_to_gain(tuned: Tuned) -> bool:
    gain = tuned.most_gain
    return gain is not None and gain < LEAST_GAIN


def _expected_saving(tuned: Tuned, candidate: Candidate) -> float:
    gain, first = tuned.most_gain, _first(tuned, ()) or 0.0
    return expected_saving(candidate, first, None if gain is None else gain * first) if first else 0.0


def _worth_trying(tuned: Tuned) -> list[int]:
    """Indices of candidates whose trial is expected to pay. The first run determines the list, so it never changes."""
    return [
        index
        for index, candidate in enumerate(tuned.candidates)
        if _expected_saving(tuned, candidate) * tuned.later_runs >= 1
    ]


def _io_speedup(tuned: Tuned, best: Combination) -> float | None:
    both = [
        [run.io_s for run in tuned.runs if run.outcome == "ended" and tuple(run.candidates) == item and run.io_s]
        for item in ((), best)
    ]
    return _mean(both[0]) / _mean(both[1]) if all(both) else None


def _exploration(tuned: Tuned, most: int) -> tuple[list[Combination], list[Combination], Combination | None]:
    """Combinations that were tried, those of them that helped, and the next one to try.

    The first run of each decides, so the order never changes.
    """
    explored: list[Combination] = []
    helped: list[Combination] = []
    best: Combination = ()
    fastest = _first(tuned, ()) or math.inf
    for index in _worth_trying(tuned)[: max(1, most - _REPEATED)]:
        combination = (*best, index)
        if tuned.setting(list(combination)) == tuned.setting(list(best)):
            continue
        seconds = _first(tuned, combination)
        if seconds is None and not _has_failed(tuned, combination):
            return explored, helped, combination if most >= 2 else None
        explored.append(combination)
        if seconds is not None and seconds < fastest * (1 - LEAST_GAIN):
            best, fastest = combination, seconds
            helped.append(combination)
    return explored, helped, None


def _best(tuned: Tuned, helped: Sequence[Combination]) -> Combination | None:
    """The combination with the fastest first run; None if none beats no settings by `LEAST_GAIN`.

    It excludes candidates that did not gain that much when they were added, even if their run was slightly faster.

    Repetitions do not change the choice: two equally fast combinations would otherwise share the repetitions, and
    neither would get enough of them.
    """
    limit = _mean(_seconds(tuned, ())) * (1 - LEAST_GAIN)
    firsts = {
        item: seconds[0]
        for item in helped
        if not _has_failed(tuned, item) and (seconds := _seconds(tuned, item)) and _mean(seconds) < limit
    }
    return min(firsts, key=lambda item: firsts[item], default=None)


def _mean(seconds: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, seconds)) / len(seconds))


def _is_proven(tuned: Tuned, best: Combination, explored: Sequence[Combination], most: int) -> bool:
    rate = _error_rate(len(explored), most)
    low = compare(_seconds(tuned, ()), _seconds(tuned, best), rate).low
    return low is not None and low > 1


def _error_rate(explored: int, most: int) -> float:
    """Error rate of one decision. There can be one for each setting after each pair of repetitions."""
    return ERROR_RATE / max(1, explored) / max(1, (most - 1 - explored) // 2)
