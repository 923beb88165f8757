"""Implements `vani advise --next`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.centre.history.api.add import machine_like
from vani.centre.history.api.predict import history_predict
from vani.centre.history.ingest_result import unpack_profile
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.prediction.behaviour.weighed_advice import LEAST_KNOWN, Part, weighed
from vani.cli.advise import advise
from vani.cli.profile import profile
from vani.cli.sources import JUDGED_FILES
from vani.errors import VaniError
from vani.schema.advice import Advice, NextRun, NextRunBehaviour, ProfileRef, SystemRef
from vani.schema.settings import PathLike
from vani.systems import system_of
from vani.units import format_share

if TYPE_CHECKING:
    from vani.centre.prediction.schema import BehaviourPrediction, LikelyBehaviour
    from vani.schema.profile import Profile
    from vani.schema.system import System

_UNLIKELY: Final = 0.05


def advise_next(
    application: str,
    *,
    user: str | None = None,
    processes: int | None = None,
    db: PathLike | None = None,
    system: PathLike | System | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    config: PathLike | None = None,
    files: int | None = JUDGED_FILES,
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
    parts: list[Part] = []
    behaviours: list[NextRunBehaviour] = []
    for behaviour in predicted.behaviours:
        if behaviour.probability < _UNLIKELY and parts:
            continue
        latest = _profile_of(behaviour, db)
        if latest is not None:
            profile, file_system = latest
            machine = system_of(system) if system is not None else _machine_of(file_system)
            parts.append(
                Part(
                    behaviour.probability,
                    advise(profile, system=machine, select=select, ignore=ignore, config=config, files=files),
                )
            )
        run = None if latest is None else next(iter(behaviour.resembles.paths), behaviour.resembles.digest)
        behaviours.append(
            NextRunBehaviour(behaviour=behaviour.behaviour, probability=behaviour.probability, run=run)
        )
    known = sum(part.probability for part in parts)
    next_run = NextRun(
        application=application,
        user=predicted.user,
        processes=predicted.processes,
        behaviours=behaviours,
        default=None,
    )
    if known >= LEAST_KNOWN:
        return weighed(parts, next_run)
    why = _why(predicted, format_share(known))
    return Advice(
        profile=ProfileRef(path=None, sha256=""),
        system=SystemRef(name=None, sha256=""),
        next_run=next_run.model_copy(update={"default": why}),
        recommendations=[],
        no_recommendation=[],
    )


def _why(predicted: BehaviourPrediction, known: str) -> str:
    if predicted.outside:
        return predicted.outside[0]
    return f"the behaviours with a profile have a total probability of {known}"


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


def _machine_of(file_system: str) -> System | None:
    return machine_like(file_system)
