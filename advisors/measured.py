"""Replaces a model's estimates in advice with the results of `vani tune`.

Proven settings come first. Those that did not help come last, where nothing applies them. The estimates of the others
still refer to the time that those before them in the model's order leave. Measurements of their rules correct
them (`vani.models.measured_gain`).
"""


import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from vani.advisors.judge import MATTER, SEVERITIES, with_remedy
from vani.models.measured_gain import Correction, corrected, correction_of
from vani.schema.advice import Advice, Measured, Recommendation, Severity
from vani.schema.tuned import Setting
from vani.units import counted, parse_bytes

SURE: Final = 0.95
"""Confidence in a setting proven at the same scale: the error rate of `vani tune` is 5 %."""

NOTHING_LEFT: Final = "no setting that was measured on this machine helps"


@dataclass(frozen=True)
class Trial:
    """A setting and its result."""

    setting: Setting
    measured: Measured


def with_measured(
    advice: Advice,
    trials: Sequence[Trial],
    remarks: Iterable[str] = (),
    speedups: Mapping[str, Sequence[tuple[float, float]]] = MappingProxyType({}),
) -> Advice:
    """The advice with measurements of its settings. The first trial of a setting counts.

    Parameters
    ----------
    trials
        Trials of the same application on the same machine at a comparable scale, the nearest scale first.
    remarks
        Sentences for the advice's notes.
    speedups
        Expected and measured speed-ups by rule, for runs of any application on the machine. They correct estimates.
    """
    corrections = {rule: correction_of(pairs) for rule, pairs in speedups.items()}
    recommendations = [
        _corrected(_measured(item, trials), corrections.get(item.rule)) for item in advice.recommendations
    ]
    ranked = sorted(recommendations, key=_rank)
    known = [item.measured for item in ranked if item.measured is not None]
    notes = [*(advice.notes or ()), *_counts(ranked), *_others(ranked, trials), *remarks]
    verdict = advice.verdict
    if verdict is not None and verdict.matters == "yes" and known:
        # If no recommendation is left, the verdict's remedy may be one that did not help.
        verdict = with_remedy(verdict.model_copy(update={"remedy": NOTHING_LEFT}), ranked)
    return advice.model_copy(update={"recommendations": ranked, "notes": notes or None, "verdict": verdict})


def trial_of(setting: Setting, trials: Iterable[Trial]) -> Trial | None:
    """The first trial of exactly this setting, or one that proved it together with others."""
    wanted = _parts(setting)
    for trial in trials:
        parts = _parts(trial.setting)
        if wanted and (wanted == parts or (wanted < parts and trial.measured.helps)):
            return _with_rest(trial, setting)
    return None


def _severity(share: float) -> Severity:
    """Severity of a proven setting that saves this share of the run: as for estimates, but at least low."""
    return next((severity for least, severity in SEVERITIES if share >= least), "low")


def _measured(item: Recommendation, trials: Sequence[Trial]) -> Recommendation:
    setting = _setting_of(item)
    trial = None if setting is None else trial_of(setting, trials)
    if trial is None:
        return item
    measured = trial.measured
    changes: dict[str, object] = {"expected": None, "measured": measured}
    if not measured.helps:
        changes["severity"] = "info"
    elif measured.verdict == "proven" and measured.speedup is not None:
        changes["severity"] = _severity(max(0.0, 1 - 1 / measured.speedup))
        if (measured.processes, measured.nodes) == (measured.this_processes, measured.this_nodes):
            changes["confidence"] = SURE
    return item.model_copy(update=changes)


def _corrected(item: Recommendation, correction: Correction | None) -> Recommendation:
    if item.gain is None or correction is None or item.rule == MATTER:
        return item
    return item.model_copy(update={"expected": corrected(item.gain, correction)})


def _setting_of(item: Recommendation) -> Setting | None:
    """The recommended values of all tunable settings as one setting; None if there are none, or if layouts differ."""
    settings = [Setting.of_tunable(tunable, tunable.values[0]) for tunable in item.settings if tunable.values]
    if not settings or len({_layout(setting.layout) for setting in settings if setting.layout}) > 1:
        return None
    whole = Setting()
    for setting in settings:
        whole = whole.with_(setting)
    return whole


def _rank(item: Recommendation) -> tuple[int, float]:
    """Sort key: MAT001, proven settings (best first), others in their order, settings that do not help."""
    if item.rule == MATTER:
        return (0, 0.0)
    if item.measured is not None and item.measured.verdict == "proven":
        return (1, -(item.measured.speedup or 0.0))
    return (3 if item.measured is not None and not item.measured.helps else 2, 0.0)


def _parts(setting: Setting) -> frozenset[tuple[str, ...]]:
    """Parts of a setting in a normalised form."""
    return frozenset(_spelled(part) for part in setting.parts)


def _spelled(part: tuple[str, ...]) -> tuple[str, ...]:
    return ("layout", *_layout(part[1])) if part[0] == "layout" else part


def _layout(options: str | None) -> tuple[str, ...]:
    """Words of layout options with sizes in bytes, so that 4M equals 4194304."""

    def plain(word: str) -> str:
        if not word[:1].isdigit():
            return word
        try:
            return str(parse_bytes(word))
        except ValueError:
            return word

    try:
        words = shlex.split(options or "")
    except ValueError:
        return (options or "",)
    return tuple(map(plain, words))


def _with_rest(trial: Trial, setting: Setting) -> Trial:
    """The trial with a remark that names its other settings."""
    rest, known = Setting(), _parts(setting)
    for part, alone in trial.setting.parts.items():
        if _spelled(part) not in known:
            rest = rest.with_(alone)
    label = None if rest == Setting() else rest.label
    return replace(trial, measured=trial.measured.model_copy(update={"together_with": label}))


def _counts(ranked: Sequence[Recommendation]) -> list[str]:
    verdicts = [item.measured.verdict for item in ranked if item.measured is not None]
    if not verdicts:
        return []
    words = {"proven": "proven", "not_proven": "not proven", "no_gain": "without gain", "failed": "failed"}
    parts = [f"{verdicts.count(verdict)} {word}" for verdict, word in words.items() if verdict in verdicts]
    number = sum(item.rule != MATTER for item in ranked)
    return [
        f"Measured on this machine: {len(verdicts)} of {counted(number, 'recommendation')} ({', '.join(parts)})."
    ]


def _others(ranked: Sequence[Recommendation], trials: Sequence[Trial]) -> list[str]:
    """Sentences on proven settings that no recommendation has."""
    recommended = [parts for item in ranked if (setting := _setting_of(item)) and (parts := _parts(setting))]
    labels = [
        trial.setting.label
        for trial in trials
        if trial.measured.verdict == "proven" and not any(parts <= _parts(trial.setting) for parts in recommended)
    ]
    return [
        f"Another setting was proven on this machine, and is not recommended here: {label}."
        for label in dict.fromkeys(labels)
    ]
