"""Settings of advice that `vani tune` tries, in the order in which it tries them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vani.advisors.measured import trial_of
from vani.render.wording import measured_gain
from vani.schema.advice import Advice
from vani.schema.tuned import Candidate, NotTried, Setting

if TYPE_CHECKING:
    from vani.advisors.measured import Trial
    from vani.schema.advice import Expected, Measured, Recommendation

__all__ = ["candidates_of", "in_order"]


def candidates_of(advice: Advice, data: Path, runtime_s: float | None = None) -> tuple[list[Candidate], list[NotTried]]:
    """Settings worth trying, in the order of the advice: the first value of each before second ones."""
    rounds: list[list[Candidate]] = []
    not_tried = []
    for item in advice.recommendations:
        if not item.apply and not item.knobs:
            continue
        why = None
        if item.measured is not None and not item.measured.helps:
            why = _not_again(item.measured)
        elif item.severity == "info":
            why = "hardly matters"
        elif not item.knobs:
            why = "needs more than a setting from outside of the program"
        for knob in [] if why else item.knobs:
            if knob.kind == "layout" and not _is_within(knob.folder, data):
                why = f"sets the layout of {knob.folder}, which is not in {data}"
                continue
            for index, value in enumerate(knob.values):
                setting = (
                    Setting(layout=value["options"])
                    if knob.kind == "layout"
                    else Setting(hints=value)
                    if knob.kind == "hints"
                    else Setting(environment=value)
                )
                candidate = Candidate(
                    rule=item.rule,
                    name=item.name,
                    reason=item.reason,
                    expected=item.gain.speedup if item.gain else None,
                    saves_s=_saves_s(item),
                    is_faster=item.expected is not None or (item.measured is not None and item.measured.helps),
                    expected_run=_of_run(item.gain, runtime_s),
                    setting=setting,
                )
                while len(rounds) <= index:
                    rounds.append([])
                if all(candidate.setting != known.setting for known in rounds[index]):
                    rounds[index].append(candidate)
        if why:
            not_tried.append(NotTried(rule=item.rule, why=why))
    return [candidate for values in rounds for candidate in values], not_tried


def in_order(
    candidates: Sequence[Candidate], trials: Sequence[Trial]
) -> tuple[list[Candidate], list[NotTried]]:
    """Candidates with those first that were proven before, and without those that did not help."""
    proven, others, not_tried = [], [], []
    for candidate in candidates:
        trial = trial_of(candidate.setting, trials)
        if trial is None or trial.measured.verdict == "not_proven":
            others.append(candidate)
        elif trial.measured.helps:
            proven.append(candidate.model_copy(update={"is_faster": True, "saves_s": None}))
        else:
            why = f"{candidate.setting.label}: {_not_again(trial.measured)}"
            not_tried.append(NotTried(rule=candidate.rule, why=why))
    return [*proven, *others], not_tried


def _not_again(measured: Measured) -> str:
    text = measured_gain(measured).removesuffix("; leave it as it is")
    return f"{text[:1].lower()}{text[1:]}; without --history it is tried again"


def _of_run(gain: Expected | None, runtime_s: float | None) -> float | None:
    """Expected speedup of the whole run; None where it is not known, or nothing would be left of the run."""
    if gain is None or gain.before is None or gain.after is None or not runtime_s:
        return None
    left = runtime_s - (gain.before - gain.after)
    return runtime_s / left if left > 0 else None


def _is_within(folder: str | None, data: Path) -> bool:
    return folder is not None and Path(folder).absolute().resolve().is_relative_to(data.resolve())


def _saves_s(item: Recommendation) -> tuple[float, float, float] | None:
    """Seconds of the run that a recommendation saves: least, median, most; None where it gives no number."""
    gain = item.gain
    if gain is None or gain.before is None or not gain.speedup or not gain.low or not gain.high:
        return None
    low, median, high = (gain.before * (1 - 1 / speedup) for speedup in (gain.low, gain.speedup, gain.high))
    return low, median, high
