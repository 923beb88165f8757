"""Changes: how far attributes may differ from the runs of a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from vani.gate.attribute import Leaf
from vani.gate.checks import Outcome, Pending, Status, folded, outcome_at
from vani.gate.matching import Figures, Match, Names, Tree, Value, aggregated, find, matches, number, why_null
from vani.gate.policy import ChangeCheck
from vani.gate.tolerance import SEVERAL, Allowed, Dimension, Tolerance, allowed, shown, tolerance_of
from vani.schema.check import Level
from vani.schema.policy import Direction
from vani.units import counted, format_number

_SIGNS: Final[dict[Direction, str]] = {"increase": "+", "decrease": "-", "both": "±"}
_NO: Final[dict[Direction, str]] = {"increase": "no increase", "decrease": "no decrease", "both": "no change"}
_ACCEPT: Final = "if intended: vani check PROFILE --update-baseline; `vani diff` shows all that changed"


def judge_change(check: ChangeCheck, figures: Figures, runs: Sequence[Tree], names: Names) -> list[Outcome]:
    """One outcome for each place that the attribute matches in the profile or in a run of the baseline."""
    if not runs:
        return [_unknown(check, None, "has no baseline to compare with")]
    if check.attribute.aggregate is not None:
        return [_aggregate(check, figures, runs, names)]
    outcomes = folded(
        [pending for leaf in check.leaves for pending in _each(check, leaf, figures, runs, names)]
    )
    if not outcomes and check.place is not None:
        return [_unknown(check, None, "matches nothing, neither in the profile nor in the baseline")]
    return outcomes


def _each(
    check: ChangeCheck, leaf: Leaf, figures: Figures, runs: Sequence[Tree], names: Names
) -> Iterator[Pending]:
    limits = _Limits(check, tolerance_of(leaf.dotted))
    seen = set()
    for match in matches(leaf, figures.tree, names, figures.path):
        seen.add(match.trail)
        absent = 0 if leaf.in_table else None
        earlier = [find(match.trail, run, names, absent=absent) for run in runs]
        outcome = _pending(check, match, earlier, figures, limits)
        if outcome is not None:
            yield outcome
    # Every profile has the attributes of the built-in list, unless an app is missing, and apps are counted.
    if check.place is None and not check.required:
        return
    for run in runs:
        for match in matches(leaf, run, names, "baseline"):
            if match.trail in seen or match.value is None or find(match.trail, figures.tree, names)[0]:
                continue
            seen.add(match.trail)
            yield _not_compared(check, match, _why_gone(match, figures))


def _pending(
    check: ChangeCheck,
    match: Match,
    earlier: Sequence[tuple[bool, Value]],
    figures: Figures,
    limits: _Limits,
) -> Pending | None:
    """The outcome for one place; None if a check of the built-in list has no result."""
    known = [value for value in (number(value) for _, value in earlier) if value is not None]
    if isinstance(match.value, (int, float)) and known:
        return limits.pending(match, match.value, known)
    if check.place is None and (match.value is None) == (not known):
        return None
    if match.value is None:
        return _not_compared(check, match, f"is not known ({why_null(match.leaf, figures.model.provenance)})")
    if any(is_there for is_there, _ in earlier):
        return _not_compared(check, match, "is not known in the baseline")
    return _not_compared(check, match, "is not in the baseline")


def _not_compared(check: ChangeCheck, match: Match, why: str) -> Pending:
    return Pending(
        "fail" if check.required else "unknown", match.trail, 0.0, partial(_unknown, check, match, why)
    )


def _why_gone(match: Match, figures: Figures) -> str:
    problem = "is in the baseline and not in the profile"
    total = figures.model.dataset.files
    if match.trail[0] == "files" and total is not None and figures.listed < total:
        problem += f", which lists {figures.listed:,} of {total:,} files"
    return problem


def _aggregate(check: ChangeCheck, figures: Figures, runs: Sequence[Tree], names: Names) -> Outcome:
    def aggregate_of(tree: Tree, where: str) -> tuple[Value, Dimension]:
        matched = [match for leaf in check.leaves for match in matches(leaf, tree, names, where)]
        return aggregated(check.attribute, matched)

    value, dimension = aggregate_of(figures.tree, figures.path)
    known = [old for old in (number(aggregate_of(run, "baseline")[0]) for run in runs) if old is not None]
    if not isinstance(value, (int, float)) or not known:
        return _unknown(check, None, f"matches nothing in the {'profile' if value is None else 'baseline'}")
    # The number of entities is as exact as other counts.
    dotted = "dataset.files" if check.attribute.aggregate == "count" else check.leaves[0].dotted
    limits = _Limits(check, tolerance_of(dotted))
    return limits.compared(None, value, limits.of(known), len(known), dimension)


class _Limits:
    """The tolerance of a check: the policy's values, and those of the table of tolerances where it has none."""

    def __init__(self, check: ChangeCheck, tolerance: Tolerance) -> None:
        own = check.relative is not None
        self.check = check
        self.relative = check.relative if check.relative is not None else tolerance.relative
        self.absolute = check.absolute if own and check.absolute is not None else tolerance.absolute
        self.direction = check.direction or tolerance.direction
        self.level = check.level or tolerance.level

    def level_of(self, value: float, limits: Allowed, runs: int, dimension: Dimension) -> Level:
        """The policy's level, or else the table's. A time that exceeds the noise of several runs is an error."""
        if self.check.level is None and dimension == "seconds" and self.direction == "increase":
            beyond_noise = value - limits.center > max(limits.by_noise, self.absolute)
            is_slower = runs >= SEVERAL and beyond_noise and value >= self.check.slower * limits.center
            return "error" if is_slower else self.level
        return self.level

    def of(self, known: Sequence[float]) -> Allowed:
        """The allowed range around the values of a baseline."""
        return allowed(known, relative=self.relative, absolute=self.absolute, noise=self.check.noise)

    def pending(self, match: Match, value: float, known: Sequence[float]) -> Pending:
        """Compare one place."""
        limits = self.of(known)
        status: Status = "pass" if limits.accepts(value, self.direction) else "fail"
        closeness = (
            abs(value - limits.center) / limits.most if value != limits.center and limits.most else 0.0
        )
        write = partial(self.compared, match, value, limits, len(known), match.leaf.dimension)
        return Pending(status, match.trail, closeness, write)

    def compared(
        self, match: Match | None, value: float, limits: Allowed, runs: int, dimension: Dimension
    ) -> Outcome:
        """The outcome of a comparison of a place or, without a match, an aggregate."""
        check, center = self.check, limits.center
        is_allowed = limits.accepts(value, self.direction)
        limit = allowed_text(self.relative, self.absolute, limits, self.direction, dimension)
        now, before = shown(value, dimension), shown(center, dimension)
        if now == before and value != center:
            now, before = shown(value, dimension, exact=True), shown(center, dimension, exact=True)
        was = f"{before} in the baseline" + (f" (median of {runs} runs)" if runs > 1 else "")
        what = (
            f"is {now}{change_text(value, center)}, and was {was}; "
            f"allowed: {limit}{_bound(limits, self.direction, dimension)}"
        )
        if not is_allowed and dimension == "seconds" and runs < SEVERAL:
            what += f"; {cannot_judge(runs)}"
        return outcome_at(
            check,
            match,
            "change",
            "pass" if is_allowed else "fail",
            self.level_of(value, limits, runs, dimension),
            f"is {now} as in the baseline" if value == center else what,
            value=value,
            limit=limit,
            baseline=center,
            change=relative_change(center, value),
            todo=None if is_allowed else _ACCEPT,
        )


def cannot_judge(runs: int) -> str:
    """A phrase on why a time that is too long is only a warning."""
    return (
        f"{counted(runs, 'run')} of a baseline cannot judge a time: save {SEVERAL} or more "
        "(`vani check RUN --save --add`)"
    )


def relative_change(before: float, after: float) -> float | None:
    """(after - before) / |before|; None if before is 0."""
    return (after - before) / abs(before) if before else None


def change_text(value: float, center: float) -> str:
    """` (+25 %)` or ` (3.2 times as much)`; empty if the value was 0 before."""
    change = relative_change(center, value)
    if change is None:
        return ""
    return (
        f" ({format_number(value / center)} times as much)"
        if change > 3 and center > 0
        else f" ({change * 100:+.3g} %)"
    )


def allowed_text(
    relative: float, absolute: float, limits: Allowed, direction: Direction, dimension: Dimension
) -> str:
    """`+25 % or +100 ms`, `no increase`."""
    sign = _SIGNS[direction]
    parts = [f"{sign}{format_number(relative * 100, 4)} %"] if relative else []
    parts += [sign + shown(absolute, dimension)] if absolute else []
    if limits.by_noise > limits.by_tolerance:
        parts.append(f"{sign}{shown(limits.by_noise, dimension)} of noise")
    return " or ".join(parts) or _NO[direction]


def _bound(limits: Allowed, direction: Direction, dimension: Dimension) -> str:
    """`, so up to 39.4 s`: the bound that results from several tolerances, so that users need not compute it."""
    if not limits.most:
        return ""
    least = max(0.0, limits.center - limits.most)
    down, up = shown(least, dimension), shown(limits.center + limits.most, dimension)
    if direction == "both":
        return f", so {down} to {up}"
    return f", so up to {up}" if direction == "increase" else f", so down to {down}"


def _unknown(check: ChangeCheck, match: Match | None, why: str) -> Outcome:
    level = check.level or tolerance_of(check.leaves[0].dotted).level
    if not check.required:
        return outcome_at(check, match, "change", "unknown", level, why)
    todo = "`vani check PROFILE --save` makes a baseline that has it, or drop `required`"
    return outcome_at(check, match, "missing", "fail", level, why, todo=todo)
