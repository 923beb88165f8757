"""Advice for a run that has not started: advice on runs it may behave like, weighted by probability."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from vani.schema.advice import Advice, Expected, NextRun, NoRecommendation, Recommendation, Target
from vani.units import format_share

LEAST_KNOWN: Final = 0.5
"""Probability that a setting suits the run below which the default is the better guess."""
_CERTAIN: Final = 0.95
_STRIPES: Final = "lfs setstripe "

_Key = tuple[str, str, str]


@dataclass(frozen=True)
class Part:
    """The advice on a run of one behaviour, and that behaviour's probability in the next run."""

    probability: float
    advice: Advice


def weighed(parts: Sequence[Part], next_run: NextRun) -> Advice:
    """Combine the advice on several behaviours.

    A setting is recommended if the behaviours that it suits have a total probability of at least one half. Among
    settings that exclude each other, the one with the largest average saving is recommended. The expected saving is
    multiplied by that probability.

    Parameters
    ----------
    parts
        At least one part, the most likely first.
    """
    first = parts[0].advice
    support: dict[_Key, float] = {}
    wins: dict[_Key, float] = {}
    shown: dict[_Key, list[Recommendation]] = {}
    for part in parts:
        by_key: dict[_Key, list[Recommendation]] = {}
        for recommendation in part.advice.recommendations:
            by_key.setdefault(_key(recommendation), []).append(recommendation)
        for key, some in by_key.items():
            support[key] = support.get(key, 0.0) + part.probability
            wins[key] = wins.get(key, 0.0) + part.probability * sum(map(_saving, some))
            shown.setdefault(key, some)
    best: dict[tuple[str, str], _Key] = {}
    for key in shown:
        group = key[:2]
        if group not in best or (wins[key], support[key]) > (wins[best[group]], support[best[group]]):
            best[group] = key
    # Settings of one rule for several files of a run do not exclude each other, so those of one run stay
    # together.
    chosen = [key for key in shown if key == best[key[:2]] or _in_same_advice(shown, key, best[key[:2]], parts)]
    recommended = [key for key in chosen if support[key] >= LEAST_KNOWN]
    dropped = [key for key in shown if key not in recommended]
    return Advice(
        profile=first.profile,
        system=first.system,
        damage=first.damage,
        next_run=next_run,
        recommendations=[
            _weighed(recommendation, min(1.0, support[key]))
            for key in recommended
            for recommendation in shown[key]
        ],
        no_recommendation=[
            *first.no_recommendation,
            *(
                NoRecommendation(
                    rule=key[0],
                    why=f"its probability in the next run is only {format_share(min(1.0, support[key]))} only",
                )
                for key in dropped
            ),
        ],
    )


def _key(recommendation: Recommendation) -> _Key:
    return (
        recommendation.rule,
        recommendation.target.kind,
        json.dumps(recommendation.recommended, sort_keys=True, default=str),
    )


def _in_same_advice(shown: dict[_Key, list[Recommendation]], key: _Key, best: _Key, parts: Sequence[Part]) -> bool:
    """Whether the same advice recommends both."""
    return any(
        shown[key][0] in part.advice.recommendations and shown[best][0] in part.advice.recommendations
        for part in parts
    )


def _saving(recommendation: Recommendation) -> float:
    expected = recommendation.gain
    if expected is None or expected.before is None or expected.after is None:
        return 0.0
    return max(0.0, expected.before - expected.after)


def _weighed(recommendation: Recommendation, support: float) -> Recommendation:
    target, apply = _for_new_files(recommendation)
    return recommendation.model_copy(
        update={
            "confidence": recommendation.confidence * support,
            "target": target,
            "apply": apply,
            "expected": recommendation.expected
            if recommendation.gain is None
            else _expected(recommendation.gain, support),
            "reason": f"{recommendation.reason} The probability of this behaviour in the next run is "
            f"{format_share(support)}.",
        }
    )


def _expected(expected: Expected, support: float) -> Expected:
    if expected.before is None or expected.after is None:
        return expected
    after = expected.before - support * (expected.before - expected.after)
    return expected.model_copy(
        update={
            "after": after,
            "speedup": expected.before / after if after > 0 else expected.speedup,
            "low": expected.low if support >= _CERTAIN or expected.low is None else min(1.0, expected.low),
            "method": f"{expected.method}; saving times the probability of this behaviour, {support:.0%}",
        }
    )


def _for_new_files(recommendation: Recommendation) -> tuple[Target, list[str]]:
    """A file that does not exist yet takes its stripes from its folder."""
    path = recommendation.target.path
    if recommendation.target.kind != "file" or path is None or not path.startswith("/"):
        return recommendation.target, recommendation.apply
    folder = str(PurePosixPath(path).parent)
    return (
        recommendation.target.model_copy(update={"kind": "directory", "path": folder}),
        [line.replace(path, folder) if line.startswith(_STRIPES) else line for line in recommendation.apply],
    )
