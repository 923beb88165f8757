"""`vani advise --next`: advice on runs that the next run may behave like, weighted by probability."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from vani.centre.history.add import machine_like
from vani.centre.history.reading import unpack_profile
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.prediction.behaviour.next_run import history_predict
from vani.cli.advise import advise
from vani.cli.profile import profile
from vani.cli.sources import JUDGED_FILES
from vani.errors import VaniError
from vani.schema import advice as schema
from vani.schema.advice import Advice
from vani.schema.settings import PathLike
from vani.systems import system_of
from vani.units import format_share

if TYPE_CHECKING:
    from vani.centre.prediction.schema import LikelyBehaviour
    from vani.schema.profile import Profile
    from vani.schema.system import System

LEAST_KNOWN: Final = 0.5
"""Probability that a setting suits the run below which the default is the better guess."""
_CERTAIN: Final = 0.95
_STRIPES: Final = "lfs setstripe "

_Key = tuple[str, str, str]


@dataclass(frozen=True)
class LikelyAdvice:
    """The advice on a run of one behaviour, and that behaviour's probability in the next run."""

    probability: float
    advice: Advice


def weighed(parts: Sequence[LikelyAdvice], next_run: schema.NextRun) -> Advice:
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
    shown: dict[_Key, list[schema.Recommendation]] = {}
    for part in parts:
        by_key: dict[_Key, list[schema.Recommendation]] = {}
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
    probability = {key: min(1.0, share) for key, share in support.items()}
    why = "its probability in the next run is only {} only"
    unlikely = [schema.NoRecommendation(rule=key[0], why=why.format(format_share(probability[key]))) for key in dropped]
    return Advice(
        profile=first.profile, system=first.system, damage=first.damage, next_run=next_run,
        recommendations=[_weighed(each, probability[key]) for key in recommended for each in shown[key]],
        no_recommendation=[*first.no_recommendation, *unlikely],
    )  # fmt: skip


def _key(recommendation: schema.Recommendation) -> _Key:
    settings = json.dumps(recommendation.recommended, sort_keys=True, default=str)
    return recommendation.rule, recommendation.target.kind, settings


def _in_same_advice(
    shown: dict[_Key, list[schema.Recommendation]], key: _Key, best: _Key, parts: Sequence[LikelyAdvice]
) -> bool:
    """Whether the same advice recommends both."""
    pair = (shown[key][0], shown[best][0])
    return any(all(entry in part.advice.recommendations for entry in pair) for part in parts)


def _saving(recommendation: schema.Recommendation) -> float:
    expected = recommendation.gain
    if expected is None or expected.before is None or expected.after is None:
        return 0.0
    return max(0.0, expected.before - expected.after)


def _weighed(recommendation: schema.Recommendation, support: float) -> schema.Recommendation:
    target, apply = _for_new_files(recommendation)
    gain = recommendation.gain
    expected = recommendation.expected if gain is None else _expected(gain, support)
    return recommendation.model_copy(
        update={
            "confidence": recommendation.confidence * support,
            "target": target,
            "apply": apply,
            "expected": expected,
            "reason": f"{recommendation.reason} The probability of this behaviour in the next run is "
            f"{format_share(support)}.",
        }
    )


def _expected(expected: schema.Expected, support: float) -> schema.Expected:
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


def _for_new_files(recommendation: schema.Recommendation) -> tuple[schema.Target, list[str]]:
    """A file that does not exist yet takes its stripes from its folder."""
    path = recommendation.target.path
    if recommendation.target.kind != "file" or path is None or not path.startswith("/"):
        return recommendation.target, recommendation.apply
    folder = str(PurePosixPath(path).parent)
    return (
        recommendation.target.model_copy(update={"kind": "directory", "path": folder}),
        [line.replace(path, folder) if line.startswith(_STRIPES) else line for line in recommendation.apply],
    )


_UNLIKELY: Final = 0.05


def advise_next(
    application: str, *, user: str | None = None, processes: int | None = None, db: PathLike | None = None,
    system: PathLike | System | None = None, select: Sequence[str] | None = None, ignore: Sequence[str] | None = None,
    config: PathLike | None = None, files: int | None = JUDGED_FILES,
) -> Advice:
    """Advise on a run before it starts, for its likely behaviours weighted by probability.

    Parameters
    ----------
    user, processes, db
        As in `history_predict`.
    system
        The machine; None assumes a mid-sized one with the file system type of the last run.
    select, ignore, config, files
        As in `advise`.

    Returns
    -------
    Advice
        Contains no recommendations if too little is known, since the defaults are then the better guess.

    Raises
    ------
    InputError
        There is no history, or it contains no run of the application.
    """
    predicted = history_predict(application, user=user, processes=processes, db=db)
    parts: list[LikelyAdvice] = []
    behaviours: list[schema.NextRunBehaviour] = []
    for behaviour in predicted.behaviours:
        if behaviour.probability < _UNLIKELY and parts:
            continue
        latest = _profile_of(behaviour, db)
        if latest is not None:
            profile, file_system = latest
            machine = system_of(system) if system is not None else machine_like(file_system)
            advice = advise(profile, system=machine, select=select, ignore=ignore, config=config, files=files)
            parts.append(LikelyAdvice(behaviour.probability, advice))
        run = None if latest is None else next(iter(behaviour.resembles.paths), behaviour.resembles.digest)
        behaviours.append(
            schema.NextRunBehaviour(behaviour=behaviour.behaviour, probability=behaviour.probability, run=run)
        )
    known = sum(part.probability for part in parts)
    why = None
    if known < LEAST_KNOWN:
        few = f"the behaviours with a profile have a total probability of {format_share(known)}"
        why = predicted.outside[0] if predicted.outside else few
    next_run = schema.NextRun(
        application=application, user=predicted.user, processes=predicted.processes, behaviours=behaviours, default=why
    )
    if why is None:
        return weighed(parts, next_run)
    no_profile, no_system = schema.ProfileRef(path=None, sha256=""), schema.SystemRef(name=None, sha256="")
    return Advice(
        profile=no_profile, system=no_system, next_run=next_run, recommendations=[], no_recommendation=[]
    )


def _profile_of(behaviour: LikelyBehaviour, db: PathLike | None) -> tuple[Profile, str] | None:
    """The profile of a behaviour's representative run, and its file system; None if it can no longer be made."""
    digest = behaviour.resembles.digest
    if digest is None:
        return None
    with Store(db).reading() as connection:
        content = read.profile_content(connection, digest)
        file_system = read.file_system_of(connection, digest)
    if content is not None:
        return unpack_profile(content), file_system
    path = next((path for path in behaviour.resembles.paths if Path(path).exists()), None)
    try:
        return None if path is None else (profile(path), file_system)
    except VaniError:
        return None  # The log was changed or truncated after it was added to the history.
