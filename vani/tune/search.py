"""Which setting to run next, and what the runs show.

Both follow from the runs alone, so an interrupted session continues where it stopped.

- After a run without settings, each candidate is run, on top of those that looked much faster so far.
- All later runs compare the candidates that may still decide (`_Search.next`): each is the combination that the runs
  so far predict worst (D-optimal design), so with one candidate left, runs with and without it alternate. A proven
  candidate stays set while others are compared on top of it.
- Logarithms of times are fitted by one effect per candidate, by least squares, so every run counts for every candidate.
  Effects without evidence are left out of the model, which leaves more runs to estimate the noise.
- A candidate is proven if Student's test of its effect rejects 0. Each member of a package passes its own test; one
  that is undecided is dropped.
- The session ends early if a test is decided beyond doubt, if no candidate looks faster, or after the first run if even
  removing all I/O would gain too little. A candidate is left out if the advice expects it to save under 2 % of a run.

A session without any effect proves a setting with a probability of at most `ERROR_RATE`: the rate is divided by the
number of candidates (Bonferroni), and between early looks, the end, and extensions of the session.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Final, Literal

import numpy as np

from vani.schema.tuned import LEAST_GAIN, NotTried, Result, Tuned, TunedRun
from vani.units import counted, format_number

Combination = tuple[int, ...]


@dataclass(frozen=True)
class Fit:
    """Effects of candidates on the logarithm of a run's time, by least squares.

    Attributes
    ----------
    columns
        Candidates with an effect in the model; the others have none.
    effects
        Logarithm of the speed-up by each of them, shape (columns,).
    covariance
        Covariance of the effects, divided by the variance of a run, shape (columns, columns).
    deviation
        Standard deviation of a run's logarithm.
    freedom
        Degrees of freedom of `deviation`; at 0 it is unknown, and 0.
    """

    columns: Combination
    effects: np.ndarray
    covariance: np.ndarray
    deviation: float
    freedom: int

    @property
    def ratios(self) -> np.ndarray:
        """Ratio of each effect to its standard error."""
        errors = self.deviation * np.sqrt(np.diag(self.covariance))
        return self.effects / np.maximum(errors, 1e-9)

    def interval(self, members: Sequence[int], error_rate: float) -> tuple[float, float, float]:
        """Speed-up by several candidates together, and the ends of its interval, each wrong at `error_rate`."""
        weights = np.isin(self.columns, members).astype(float)
        effect, error = weights @ self.effects, self.deviation * math.sqrt(weights @ self.covariance @ weights)
        reach = error * _quantile(error_rate, self.freedom) if self.freedom else math.inf
        low, high = (math.exp(min(max(effect + sign * reach, -700), 700)) for sign in (-1, 1))
        return math.exp(effect), low, high


def fitted(runs: Sequence[tuple[Combination, float]], columns: Sequence[int]) -> Fit:
    """Fit an effect of each of these candidates to runs, given as candidates and seconds."""
    ordered = tuple(columns)
    table = np.array([[1.0, *(index in candidates for index in ordered)] for candidates, _ in runs])
    logs = np.log([max(seconds, 1e-9) for _, seconds in runs])
    inverse = np.linalg.pinv(table.T @ table)
    solution = inverse @ table.T @ logs
    freedom = len(runs) - int(np.linalg.matrix_rank(table))
    squares = float(((logs - table @ solution) ** 2).sum())
    deviation = math.sqrt(squares / freedom) if freedom > 0 else 0.0
    return Fit(ordered, -solution[1:], inverse[1:, 1:], deviation, freedom)


def _quantile(error_rate: float, freedom: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to load

    return float(stdtrit(freedom, 1 - error_rate))


_NOTABLE: Final = 0.01
"""Error rate of the test by which the model contains another effect (our choice, by simulation)."""


def _model(
    runs: Sequence[tuple[Combination, float]], tried: Sequence[int], others: Mapping[int, Combination]
) -> Fit:
    """The clearest gain, and each further effect with evidence of its own (forward selection).

    Each enters with `others`, the other values of its setting: runs with these are no runs without a setting.
    """
    fit = fitted(runs, ())
    while left := [index for index in tried if index not in fit.columns]:
        place = len(fit.columns)
        wider = [fitted(runs, tuple(dict.fromkeys((*fit.columns, index, *others[index])))) for index in left]
        best = max(wider, key=lambda item: abs(item.ratios[place]) if place else item.ratios[place])
        if best.freedom < 1 or (place and abs(best.ratios[place]) < _quantile(_NOTABLE, best.freedom)):
            break
        fit = best
    return fit


ERROR_RATE: Final = 0.05
"""Share of sessions without any real effect that may call a setting proven."""
_EARLY: Final = 0.1
"""Share of `ERROR_RATE` for ending before the budget is used up (our choice)."""
_ENOUGH: Final = 9
"""Runs of a budget whose end may use up `ERROR_RATE`; a smaller one leaves more for an extension."""
_SHARES: Final = {True: (0.8, 0.1), False: (0.5, 0.25)}
"""For a budget of at least `_ENOUGH` runs and for others: shares of `ERROR_RATE` for its end and for the first
extension; each further one has half of that (`python -m benchmarks.tune --noise` checks the sum)."""
_MAX_RUNS: Final = 100
"""Most runs for a budget in seconds with a very short program."""
_RIVAL: Final = 0.5
"""Share of the largest effect from which another candidate is compared further (our choice, by simulation)."""
_MOST_RIVALS: Final = 5
_TOP: Final = 0.2
"""Share of the run that a candidate must have saved so that later ones are first run on top of it (our choice)."""


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


def extended(tuned: Tuned, more: int) -> Tuned:
    """The session with runs added to its budget, and without its result."""
    ends = [] if tuned.result is None else [len(_counted(tuned))]
    most = max(number_of_runs(tuned) or 1, len(_counted(tuned))) + more
    changes = {"most_runs": most, "most_seconds": None, "most_node_hours": None, "ended": None, "result": None}
    return tuned.model_copy(update=changes | {"settings": [], "earlier_ends": [*tuned.earlier_ends, *ends]})


def not_worth_a_run(tuned: Tuned) -> list[NotTried]:
    """Candidates left out because the advice expects them to save too little of a run."""
    first = _first(tuned, ())
    if first is None or _has_nothing_to_gain(tuned):
        return []
    worth = _worth_trying(tuned)
    return [
        NotTried(
            rule=candidate.rule,
            why=f"{candidate.setting.label} is expected to save at most "
            f"{format_number(candidate.most_saved_s or 0, 2)} s of {format_number(first)} s",
        )
        for index, candidate in enumerate(tuned.candidates)
        if index not in worth
    ]


def next_candidates(tuned: Tuned) -> list[int] | None:
    """Indices of the candidates for the next run, empty for no settings; None if the session is over."""
    if _has_failed(tuned, ()):
        return None
    if _first(tuned, ()) is None:
        return []
    most = number_of_runs(tuned) or 1
    if len(_counted(tuned)) >= most or _is_spent(tuned) or _has_nothing_to_gain(tuned):
        return None
    search = _Search.of(tuned, most)
    if search.unexplored is not None:
        return list(search.unexplored) if most >= 2 else None
    # A second run without settings shows the noise, and whether the first was fast by chance.
    if len(search.tried) and len(_seconds(tuned, ())) < 2:
        return []
    chosen = search.next()
    if chosen is None and most - len(_counted(tuned)) >= 2 and not search.proven(search.fit, search.error_rates[1]):
        # A candidate that the budget did not reach at first must run twice to be proven.
        chosen = _Search.of(tuned, most, is_wide=True).unexplored
    return None if chosen is None else list(chosen)


@dataclass(frozen=True)
class _Search:
    """Findings from the runs of a session so far."""

    tuned: Tuned
    most: int
    runs: Sequence[tuple[Combination, float]]
    """Candidates and seconds of each run that ended."""
    tried: Combination
    """Candidates that ran at least once without failing."""
    unexplored: Combination | None
    """The next combination with a candidate that has not been run; None if there is none."""

    @staticmethod
    def of(tuned: Tuned, most: int, *, is_wide: bool = False) -> "_Search":
        runs = measured_runs(tuned)
        tried: list[int] = []
        first = dict(reversed(runs))
        best: Combination = ()
        fastest, unexplored = first[()], None
        for place, index in enumerate(_worth_trying(tuned)):
            is_reached = is_wide or any(index in run.candidates for run in tuned.runs)
            if place >= max(1, (most - 1) // 2) and not is_reached:
                break
            setting = tuned.candidates[index].setting
            combination = (*(item for item in best if not setting.excludes(tuned.candidates[item].setting)), index)
            if tuned.setting([*combination]) == tuned.setting([*best]):
                continue
            # What no rule recommends is not added to a large gain before that is decided.
            if tuned.candidates[index].rule == "trial" and not is_reached and set(best) < set(combination) and best:
                continue
            seconds = first.get(combination)
            if seconds is None and not _has_failed(tuned, combination):
                unexplored = combination
                break
            if seconds is not None:
                tried.append(index)
                if seconds < fastest * (1 - _TOP):
                    best, fastest = combination, seconds
        return _Search(tuned, most, runs, tuple(tried), unexplored)

    @cached_property
    def fit(self) -> Fit:
        """The model that decides."""
        others = {
            index: tuple(other for other in self.tried if not self._fits(other, [index])) for index in self.tried
        }
        return _model(self.runs, self.tried, others)

    @property
    def error_rates(self) -> tuple[float, float]:
        """Error rates of a test of one candidate: before the end of the budget, and at its end."""
        ends, count = self.tuned.earlier_ends, max(1, len(self.tried))
        end, extension = _SHARES[(ends or [self.most])[0] >= _ENOUGH]
        share = extension / 2 ** (len(ends) - 1) if ends else end
        looks = max(1, self.most - 1 - count)
        return _EARLY * ERROR_RATE / count / looks, share * ERROR_RATE / count

    def proven(self, fit: Fit, error_rate: float) -> Combination:
        """Candidates whose own test is decided, largest effect first, if some run has all of them."""
        if not fit.columns or fit.freedom < 1:
            return ()
        ratios, least = fit.ratios, _quantile(error_rate, fit.freedom)
        ordered = sorted(range(len(fit.columns)), key=lambda at: -fit.effects[at])
        passed = [fit.columns[at] for at in ordered if fit.effects[at] > _LEAST and ratios[at] >= least]
        members: list[int] = []
        for index in passed:
            with_it = sum(index in run for run, _ in self.runs)
            if 2 <= with_it <= len(self.runs) - 2 and any({*members, index} <= set(run) for run, _ in self.runs):
                members.append(index)
        return tuple(members)

    def next(self) -> Combination | None:
        """The combination that decides most; None if nothing is left to decide."""
        fit = fitted(self.runs, self.tried)
        settled = self.proven(self.fit, self.error_rates[0])
        best = max((fit.effects[self.tried.index(index)] for index in settled), default=0.0)
        undecided = [
            (effect, index)
            for effect, index in sorted(zip(fit.effects, self.tried, strict=True), reverse=True)
            # Another value of a proven setting is a rival only where it looks better.
            if index not in settled and effect > _LEAST and (self._fits(index, settled) or effect > best)
        ]
        rivals = [index for effect, index in undecided if effect >= _RIVAL * undecided[0][0]][:_MOST_RIVALS]
        if not rivals:
            return None
        table = np.array([[1.0, *(index in run for index in (*settled, *rivals))] for run, _ in self.runs])
        inverse = np.linalg.pinv(table.T @ table)
        best_row, largest = None, -1.0
        for chosen in self._subsets(rivals):
            row = (*(index for index in settled if self._fits(index, chosen)), *chosen)
            vector = np.array([1.0, *(index in row for index in (*settled, *rivals))])
            variance = float(vector @ inverse @ vector)
            if variance > largest + 1e-9 and not self._has_failed_part(row):
                best_row, largest = row, variance
        return best_row

    def _subsets(self, rivals: Sequence[int]) -> Iterator[Combination]:
        # Those of the larger effects first: of equally undecided combinations, the faster one runs.
        for flags in product((True, False), repeat=len(rivals)):
            chosen = tuple(index for index, flag in zip(rivals, flags, strict=True) if flag)
            if all(self._fits(index, chosen[:at]) for at, index in enumerate(chosen)):
                yield chosen

    def _fits(self, index: int, others: Sequence[int]) -> bool:
        settings = self.tuned.candidates
        return not any(settings[index].setting.excludes(settings[other].setting) for other in others)

    def _has_failed_part(self, row: Combination) -> bool:
        return any(set(run.candidates) <= set(row) for run in self.tuned.runs if run.outcome in _FAILED)


_LEAST: Final = -math.log1p(-LEAST_GAIN)


def result_of(tuned: Tuned) -> Result:
    """The result of a session, finished or so far."""
    if _has_failed(tuned, ()):
        failed = next(run for run in tuned.runs if not run.candidates and run.outcome in _FAILED)
        why = f"run {failed.number}, without a setting: {failed.remark}"
        return Result(verdict="unfinished", why=why, candidates=[])
    first = _first(tuned, ())
    if first is None:
        return Result(verdict="unfinished", why="no run has finished", candidates=[])
    if _has_nothing_to_gain(tuned):
        gain = tuned.most_gain or 0.0
        why = (
            f"I/O takes {format_number(gain * first, 2)} s of {format_number(first)} s at most; without any, "
            f"the run would be {1 / (1 - gain):.3f} times as fast"
        )
        return Result(verdict="nothing_to_gain", why=why, candidates=[], as_is_runs=1)
    search = _Search.of(tuned, number_of_runs(tuned) or 1)
    as_is = len(_seconds(tuned, ()))
    if not any(run.candidates for run in tuned.runs):
        if not tuned.candidates:
            why = "the advice has no setting outside the program"
        elif not _worth_trying(tuned):
            why = "no setting is expected to save enough to be worth a run"
        else:
            return Result(verdict="unfinished", why="the budget allowed no setting to be tried", candidates=[])
        return Result(verdict="nothing_helps", why=why, candidates=[], as_is_runs=as_is)
    fit, all_effects = search.fit, fitted(search.runs, search.tried)
    noise = next((each.deviation for each in (all_effects, fit) if each.freedom), None)
    if not search.tried or max(all_effects.effects) <= _LEAST:
        tried = counted(len({index for run in tuned.runs for index in run.candidates}), "setting")
        why = f"{tried} tried, none at least {100 * LEAST_GAIN:.0f} % faster than without settings"
        return Result(verdict="nothing_helps", why=why, candidates=[], noise=noise, as_is_runs=as_is)
    rate = search.error_rates[1]
    members = search.proven(fit, rate)
    # Of undecided gains, the clearest.
    clearest = fit.columns[: 1 if fit.columns and fit.effects[0] > _LEAST else 0]
    best = members or clearest or (search.tried[int(np.argmax(all_effects.effects))],)
    shown = fit if set(best) <= set(fit.columns) else fitted(search.runs, best)
    by = {name: fitted(measured_runs(tuned, name), shown.columns) for name in ("seconds", "io_s") if _has(tuned, name)}
    ends = {name: each.interval(best, rate) for name, each in by.items()}
    speedup, low, high = ends["seconds"]
    sides = [sum(sign == len(set(best) & set(run)) for run, _ in search.runs) for sign in (0, len(best))]
    is_slower = judged_by(tuned) == "io_s" and members != () and high < 1
    if is_slower:
        why = "its I/O is faster, but the run as a whole is slower"
    elif members:
        why = f"faster than without it in {sides[0]} + {sides[1]} runs"
    elif min(sides) < 2:
        why = "too few runs: each must run twice, which needs a budget of at least 4"
    else:
        why = "the noise is too large or the difference too small: more runs may decide (vani tune --resume --more 4)"
    io = ends.get("io_s", (None, None, None))
    bounds: dict[str, Any] = {"low": low, "high": high, "confidence": 1 - 2 * rate, "io_low": io[1], "io_high": io[2]}
    return Result(
        verdict="proven" if members and not is_slower else "not_proven",
        why=why,
        candidates=list(best),
        judged_by=judged_by(tuned),
        speedup=speedup,
        noise=noise,
        as_is_runs=sides[0],
        best_runs=sides[1],
        io_speedup=io[0],
        **(bounds if shown.freedom else {}),
    )


_FAILED: Final = ("failed", "not_verified", "not_applied", "too_slow")


def judged_by(tuned: Tuned) -> Literal["io_s", "seconds"]:
    """The time that decides: I/O time if every run has it and the user names no other, otherwise that of the run."""
    return "io_s" if tuned.time is None and _has(tuned, "io_s") else "seconds"


def _has(tuned: Tuned, name: str) -> bool:
    ended = [run for run in tuned.runs if run.outcome == "ended"]
    sources = {run.io and run.io.source for run in ended}
    return all(getattr(run, name) for run in ended) and (name != "io_s" or len(sources) == 1)


def measured_runs(tuned: Tuned, name: str | None = None) -> list[tuple[Combination, float]]:
    """Candidates and time of each run that ended; by default the time that decides."""
    name = name or judged_by(tuned)
    return [(tuple(run.candidates), getattr(run, name)) for run in tuned.runs if run.outcome == "ended"]


def _counted(tuned: Tuned) -> list[TunedRun]:
    return [run for run in tuned.runs if run.outcome != "interrupted"]


def _seconds(tuned: Tuned, candidates: Combination) -> list[float]:
    return [seconds for run, seconds in measured_runs(tuned, "seconds") if run == candidates and seconds is not None]


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


def _worth_trying(tuned: Tuned) -> list[int]:
    """Indices of candidates that may save enough. The first run determines the list, so it never changes."""
    least = LEAST_GAIN * (_first(tuned, ()) or 0.0)
    saved = [candidate.most_saved_s for candidate in tuned.candidates]
    return [index for index, most in enumerate(saved) if most is None or most >= least]
