"""Changes: how far attributes may differ from the runs of a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import geometric_mean
from typing import Final

from vani.gate import tolerance as tolerances
from vani.gate.checks import Outcome, Pending, folded, outcome_at
from vani.gate.matching import Figures, Match, Names, Tree, Value, aggregated, find, matches, number, why_null
from vani.gate.policy import ChangeCheck
from vani.schema import check as schema
from vani.schema.policy import Direction
from vani.units import counted, format_number, format_share

_SIGNS: Final[dict[Direction, str]] = {"increase": "+", "decrease": "-", "both": "±"}
_NO: Final[dict[Direction, str]] = {"increase": "no increase", "decrease": "no decrease", "both": "no change"}
ACCEPT: Final = "if intended: vani check RUN --update-baseline; `vani diff` shows all that changed"
CANNOT_JUDGE: Final = (
    "one run of each side does not show how much times vary: check several runs, or save more "
    "(`vani check RUN --save --add`)"
)


def judge_changes(
    checks: Sequence[ChangeCheck],
    figures: Sequence[Figures],
    runs: Sequence[Tree],
    names: Names,
    false_alarms: float,
) -> tuple[list[Outcome], schema.Times | None]:
    """One outcome for each place that an attribute matches in a checked run or in a run of the baseline.

    Parameters
    ----------
    figures
        The checked runs.
    false_alarms
        The highest probability that a time of an unchanged program fails, for all times together.
    """
    places = [list(_places(check, figures, runs, names)) if runs else [] for check in checks]
    compared = [place for some in places for place in some if isinstance(place, _Compared)]
    timed = [place for place in compared if place.times is not None]
    times = [place.times for place in timed if place.times is not None]
    level, count = tolerances.level_of_each(times, [place.least for place in timed], false_alarms)
    outcomes: list[Outcome] = []
    for check, some in zip(checks, places, strict=True):
        pending = [place if isinstance(place, Pending) else place.pending(level, count) for place in some]
        if not runs:
            outcomes.append(_unknown(check, None, "has no baseline to compare with"))
        elif pending or check.place is None:
            outcomes += folded(pending)
        else:
            outcomes.append(_unknown(check, None, "matches nothing, neither in the profile nor in the baseline"))
    return outcomes, _summary(compared, level, count, false_alarms)


def _places(
    check: ChangeCheck, figures: Sequence[Figures], runs: Sequence[Tree], names: Names
) -> Iterator[_Compared | Pending]:
    if check.attribute.aggregate is not None:
        yield _aggregate(check, figures, runs, names)
        return
    for leaf in check.leaves:
        seen = set()
        absent = 0 if leaf.in_table else None
        for profile in figures:
            for match in matches(leaf, profile.tree, names, profile.path):
                if match.trail in seen:
                    continue
                seen.add(match.trail)
                now, earlier = (
                    [find(match.trail, tree, names, absent=absent) for tree in trees]
                    for trees in ([each.tree for each in figures], runs)
                )
                place = _place(check, match, now, earlier, profile)
                if place is not None:
                    yield place
        # Every profile has the attributes of the built-in list, unless an app is missing, and apps are counted.
        if check.place is None and not check.required:
            continue
        for run in runs:
            for match in matches(leaf, run, names, "baseline"):
                present = [find(match.trail, each.tree, names)[0] for each in figures]
                if match.trail not in seen and match.value is not None and not any(present):
                    seen.add(match.trail)
                    yield _not_compared(check, match, _why_gone(match, figures[0]))


def _place(
    check: ChangeCheck,
    match: Match,
    now: Sequence[tuple[bool, Value]],
    earlier: Sequence[tuple[bool, Value]],
    figures: Figures,
) -> _Compared | Pending | None:
    """One place; None if a check of the built-in list has no result."""
    after, before = ([n for n in (number(value) for _, value in side) if n is not None] for side in (now, earlier))
    if after and before:
        return _Compared(check, match, before, after, match.leaf.dotted, match.leaf.dimension)
    if check.place is None and bool(after) == bool(before):
        return None
    if match.value is None:
        return _not_compared(check, match, f"is not known ({why_null(match.leaf, figures.model.provenance)})")
    is_there = any(is_there for is_there, _ in earlier)
    return _not_compared(check, match, "is not known in the baseline" if is_there else "is not in the baseline")


def _not_compared(check: ChangeCheck, match: Match, why: str) -> Pending:
    return Pending("fail" if check.required else "unknown", match.trail, 0.0, partial(_unknown, check, match, why))


def _why_gone(match: Match, figures: Figures) -> str:
    problem = "is in the baseline and not in the profile"
    total = figures.model.dataset.files
    if match.trail[0] == "files" and total is not None and figures.listed < total:
        problem += f", which lists {figures.listed:,} of {total:,} files"
    return problem


def _aggregate(
    check: ChangeCheck, figures: Sequence[Figures], runs: Sequence[Tree], names: Names
) -> _Compared | Pending:
    def known(trees: Sequence[Tree]) -> tuple[list[int | float], tolerances.Dimension]:
        aggregates = [
            aggregated(check.attribute, [match for leaf in check.leaves for match in matches(leaf, tree, names, "")])
            for tree in trees
        ]
        return [n for n in (number(value) for value, _ in aggregates) if n is not None], aggregates[0][1]

    after, dimension = known([each.tree for each in figures])
    before, _ = known(runs)
    if not after or not before:
        why = f"matches nothing in the {'baseline' if after else 'profile'}"
        return Pending("unknown", (), 0.0, partial(_unknown, check, None, why))
    # The number of entities is as exact as other counts.
    dotted = "dataset.files" if check.attribute.aggregate == "count" else check.leaves[0].dotted
    return _Compared(check, None, before, after, dotted, dimension)


@dataclass
class _Compared:
    """A place, or without a match an aggregate, whose values are known on both sides."""

    check: ChangeCheck
    match: Match | None
    before: Sequence[int | float]
    after: Sequence[int | float]
    dotted: str
    dimension: tolerances.Dimension

    @cached_property
    def tolerance(self) -> tolerances.Tolerance:
        """The policy's values, and those of the table of tolerances where it has none."""
        check, of_table = self.check, tolerances.tolerance_of(self.dotted)
        is_own = check.relative is not None
        return tolerances.Tolerance(
            (check.relative or 0.0) if is_own else of_table.relative,
            (check.absolute or 0.0) if is_own else of_table.absolute,
            check.direction or of_table.direction,
            check.level or of_table.level,
        )

    @cached_property
    def times(self) -> tolerances.Times | None:
        """The comparison of times by their logarithms; None for exact values, or without noise to see."""
        is_measured = tolerances.is_measured(self.dotted, self.dimension)
        return tolerances.Times.of(self.before, self.after) if is_measured else None

    @cached_property
    def limits(self) -> tolerances.Limits:
        """The allowed range, of times around the geometric mean."""
        before = self.before if self.times is None else [_mean(self.before)]
        return tolerances.limits_of(before, relative=self.tolerance.relative, absolute=self.tolerance.absolute)

    @cached_property
    def value(self) -> int | float:
        """The mean of times, or the worst of exact values."""
        if self.times is not None:
            return _mean(self.after)
        if self.tolerance.direction == "both":
            return max(self.after, key=lambda value: abs(value - self.limits.center))
        return max(self.after) if self.tolerance.direction == "increase" else min(self.after)

    @property
    def least(self) -> float:
        """The smallest ratio of a time to that of the baseline, or its inverse, that exceeds the tolerance."""
        center, low, high = self.limits
        return center / low if self.tolerance.direction == "decrease" and low > 0 else high / center

    def effect(self, level: float, count: float) -> schema.Effect | None:
        """The effect on a time, with what the tolerance and so many runs leave unseen."""
        return None if self.times is None else self.times.effect(self.tolerance.direction, level, count, self.least)

    def pending(self, level: float, count: float) -> Pending:
        """The outcome if each of `count` times is tested at this level."""
        effect = self.effect(level, count)
        fails = not self.limits.accepts(self.value, self.tolerance.direction)
        fails = fails and (effect is None or effect.is_significant)
        away, limits = abs(self.value - self.limits.center), self.limits
        most = limits.high - limits.center if self.value > limits.center else limits.center - limits.low
        return Pending(
            "fail" if fails else "pass",
            () if self.match is None else self.match.trail,
            away / most if most else 0.0,
            partial(self._outcome, effect, is_failed=fails),
        )

    def _outcome(self, effect: schema.Effect | None, *, is_failed: bool) -> Outcome:
        tolerance, value, center = self.tolerance, self.value, self.limits.center
        now, before = tolerances.shown(value, self.dimension), tolerances.shown(center, self.dimension)
        if now == before and value != center:
            now, before = (tolerances.shown(each, self.dimension, exact=True) for each in (value, center))
        limit = self._allowed()
        level = tolerance.level
        if effect is not None:
            what = f"is {now} and was {before} in the baseline: {effect_text(effect, tolerance.direction)}; "
            what += f"allowed: {limit}" if is_failed else f"a slowdown below {_factor(effect.unseen)} stays unseen"
            if self.check.level is None and self.dimension == "seconds" and tolerance.direction == "increase":
                level = "error"
        elif value == center:
            what = f"is {now} as in the baseline"
        else:
            of = f" (median of {len(self.before)} runs)" if len(self.before) > 1 else ""
            worst = f" in the worst of {len(self.after)} runs" if len({*self.after}) > 1 else ""
            what = f"is {now}{worst}{change_text(value, center)}, and was {before} in the baseline{of}; "
            what += f"allowed: {limit}{self._bound()}"
            if is_failed and tolerances.is_measured(self.dotted, self.dimension):
                what += f"; {CANNOT_JUDGE}"
        return outcome_at(
            self.check,
            self.match,
            "change",
            "fail" if is_failed else "pass",
            level,
            what,
            value=value,
            limit=limit,
            baseline=center,
            change=(value - center) / abs(center) if center else None,
            effect=effect,
            todo=ACCEPT if is_failed else None,
        )

    def _allowed(self) -> str:
        """`+25 % or +100 ms`, `no increase`, or what the runs of the baseline have."""
        sign, tolerance = _SIGNS[self.tolerance.direction], self.tolerance
        parts = [f"{sign}{format_number(tolerance.relative * 100, 4)} %"] if tolerance.relative else []
        parts += [sign + tolerances.shown(tolerance.absolute, self.dimension)] if tolerance.absolute else []
        spread = [abs(value - self.limits.center) for value in self.before]
        if self.times is None and max(spread) > max(tolerance.relative * abs(self.limits.center), tolerance.absolute):
            parts.append("as in the baseline's runs")
        return " or ".join(parts) or _NO[tolerance.direction]

    def _bound(self) -> str:
        """`, so up to 39.4 s`: the bound that results from several tolerances, so that users need not compute it."""
        direction = self.tolerance.direction
        down, up = (tolerances.shown(max(0.0, each), self.dimension) for each in (self.limits.low, self.limits.high))
        if self.limits.low == self.limits.high:
            return ""
        if direction == "both":
            return f", so {down} to {up}"
        return f", so up to {up}" if direction == "increase" else f", so down to {down}"


def _mean(values: Sequence[int | float]) -> int | float:
    return values[0] if len(values) == 1 else geometric_mean(values)


def effect_text(effect: schema.Effect, direction: Direction) -> str:
    """`1.42 times slower, 95 %: 1.2 to 1.7`."""
    ratio, low, high = effect.ratio, effect.low, effect.high
    is_slower = (ratio >= 1) is (direction != "decrease")
    if ratio < 1:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    word = "slower" if is_slower else "faster"
    return f"{format_number(ratio, 3)} times {word}, 95 %: {_factor(low)} to {_factor(high)}"


def _factor(value: float) -> str:
    return format_number(value, 2) if value < 100 else "100 or more"


def _summary(compared: Sequence[_Compared], level: float, count: float, false_alarms: float) -> schema.Times | None:
    """The comparison of all times in one sentence; None if none was compared by its noise."""
    timed = [(place, effect) for place in compared if (effect := place.effect(level, count)) is not None]
    if not timed:
        return None
    unseen = [effect.unseen for place, effect in timed if place.tolerance.direction != "both"] or [timed[0][1].unseen]
    runs, before = max(len(place.after) for place, _ in timed), max(len(place.before) for place, _ in timed)
    least, most = _factor(min(unseen)), _factor(max(unseen))
    return schema.Times(
        compared=len(timed),
        runs=runs,
        baseline_runs=before,
        false_alarms=false_alarms,
        least_unseen=min(unseen),
        most_unseen=max(unseen),
        sentence=f"{counted(runs, 'run')} and {before:,} of the baseline, {counted(len(timed), 'time')}: an unchanged "
        f"program fails at most {format_share(false_alarms)} of such checks by its times; with these runs a slowdown "
        f"below {least if least == most else f'{least} to {most}, depending on the time,'} stays unseen",
    )


def change_text(value: float, center: float) -> str:
    """` (+25 %)` or ` (3.2 times as much)`; empty if the value was 0 before."""
    if not center:
        return ""
    change = (value - center) / abs(center)
    if change > 3 and center > 0:
        return f" ({format_number(value / center)} times as much)"
    return f" ({change * 100:+.3g} %)"


def _unknown(check: ChangeCheck, match: Match | None, why: str) -> Outcome:
    level = check.level or tolerances.tolerance_of(check.leaves[0].dotted).level
    if not check.required:
        return outcome_at(check, match, "change", "unknown", level, why)
    todo = "`vani check RUN --save` makes a baseline that has it, or drop `required`"
    return outcome_at(check, match, "missing", "fail", level, why, todo=todo)
