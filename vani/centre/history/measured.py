"""Settings that a session of `vani tune` measured, as rows of a history."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vani.centre.history.rows import Measurement
from vani.errors import InputError, one_line
from vani.schema.tuned import Setting, Tuned, TunedRun

VERDICTS: Final = ("proven", "not_proven", "no_gain", "failed")
LEAST_GAIN: Final = 0.02
"""As in the search: a setting that saves less in its first run is not combined with others."""
SCALE: Final = 2.0
"""Factor between numbers of processes, or nodes, up to which a measurement still applies to a run (our choice)."""
_WRONG: Final = ("failed", "not_verified")


def measurements_in(path: Path, user: str) -> list[Measurement]:
    """Rows of a session's file.

    Raises
    ------
    InputError
        The file is not a session's document.
    """
    return measurements_of(Tuned.load(path), user, where=path)


def measurements_of(tuned: Tuned, user: str, *, where: Path | str = "tuned.yaml") -> list[Measurement]:
    """A row for the best setting and one for each other tried setting; none for an unfinished session.

    A setting tried on top of others that had helped is compared with those alone. A setting that was not applied
    has no measurement.

    Raises
    ------
    InputError
        The document contains a value that no session writes.
    """
    result = tuned.result
    if result is None:
        return []
    best = tuple(result.candidates)
    tried: dict[tuple[int, ...], list[TunedRun]] = {}
    for run in tuned.runs:
        tried.setdefault(tuple(run.candidates), []).append(run)
    rows: list[Measurement] = []
    for candidates, runs in tried.items():
        if not candidates or (candidates != best and set(candidates) <= set(best)):
            continue
        whole = candidates == best
        verdict, speedup = (result.verdict, result.speedup) if whole else _alone(runs, tried.get(candidates[:-1], []))
        low, high = (result.low, result.high) if whole else (None, None)
        if verdict not in VERDICTS:
            continue
        indices = candidates if whole else candidates[-1:]
        setting = tuned.setting([*indices])
        rows.append(
            Measurement(
                digest=_digest(tuned), position=len(rows), user=user, application=tuned.application,
                machine=tuned.machine, processes=tuned.processes, nodes=tuned.nodes,
                setting=json.dumps(setting.model_dump(mode="json", exclude_defaults=True), sort_keys=True),
                rules=tuple(dict.fromkeys(tuned.candidates[index].rule for index in indices)),
                verdict=verdict, speedup=speedup, low=low, high=high,
                expected=tuned.candidates[candidates[0]].expected_run if len(candidates) == 1 else None,
                runs=sum(run.outcome == "ended" for run in runs), noise=result.noise,
                ended=_moment(tuned.ended or tuned.begun, where),
            )
        )
    try:
        for row in rows:
            check_measurement(row)
    except ValueError as error:
        raise InputError(f"is not the result of a session ({error})", where=where) from error
    return rows


def check_measurement(row: Measurement) -> None:
    """Raise ValueError, naming the column, if a row has a value that no session can have."""
    if row.verdict not in VERDICTS:
        raise ValueError("no such verdict")
    for name in ("speedup", "low", "high", "expected", "noise"):
        value = getattr(row, name)
        if value is not None and not (0 if name == "noise" else 1e-9) <= value < math.inf:
            raise ValueError(f"{name} is {value:g}")
    if row.verdict == "proven" and None in (row.speedup, row.low, row.high):
        raise ValueError("proven without a number")
    Setting.model_validate_json(row.setting)


def comparable(rows: Iterable[Measurement], processes: int | None, nodes: int | None) -> list[Measurement]:
    """Rows within a factor of `SCALE` of a run's scale, the nearest first, and the latest first among these.

    A row and a run cannot be compared if either's number of processes is unknown; the number of nodes may be.
    """

    def distance(row: Measurement) -> float:
        if row.processes is None or processes is None:
            return math.inf
        pairs = [(row.processes, processes), *([(row.nodes, nodes)] if row.nodes and nodes else [])]
        return max(abs(math.log(then / now)) for then, now in pairs)

    near = [(distance(row), row) for row in rows]
    most = math.log(SCALE) * (1 + 1e-9)
    return [row for away, row in sorted(near, key=lambda pair: (pair[0], -pair[1].ended)) if away <= most]


def _alone(runs: Sequence[TunedRun], before: Sequence[TunedRun]) -> tuple[str, float | None]:
    """Verdict on a setting that is not the best, and its speedup."""
    if any(run.outcome in _WRONG for run in runs):
        return "failed", None
    ratio = _ratio(before, runs)
    if ratio is None:
        return "", None
    return ("not_proven" if ratio > 1 / (1 - LEAST_GAIN) else "no_gain"), ratio


def _ratio(before: Iterable[TunedRun], after: Iterable[TunedRun]) -> float | None:
    """Geometric mean of `before` divided by that of `after`; None if either is empty."""
    means = []
    for runs in (before, after):
        logs = [math.log(run.seconds) for run in runs if run.outcome in ("ended", "too_slow") and run.seconds]
        if not logs:
            return None
        means.append(sum(logs) / len(logs))
    return math.exp(means[0] - means[1])


def _digest(tuned: Tuned) -> str:
    """SHA-256 of a session's constant part."""
    first = tuned.runs[0].model_dump(mode="json")
    return hashlib.sha256(json.dumps([tuned.begun, tuned.host, first]).encode()).hexdigest()


def _moment(text: str, where: Path | str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{one_line(text)[:40]!r} is not a date", where=where, todo="write it as 2026-03-03") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
