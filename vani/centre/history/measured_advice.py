"""Settings that sessions of `vani tune` measured, for advice and for the next session."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vani.advisors.measured import Trial, with_measured
from vani.centre.history.ingest import refuse_other_names
from vani.centre.history.measured import SCALE, comparable, measurements_of
from vani.centre.history.names import PlainNames
from vani.centre.history.rows import Measurement
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.schema.advice import Advice, Measured
from vani.schema.settings import PathLike
from vani.schema.tuned import Setting, Tuned

if TYPE_CHECKING:
    from vani.cli.sources import Subject


def advice_with_history(advice: Advice, subject: Subject, db: PathLike) -> Advice:
    """Add measurements to the settings of the advice, and remarks on sessions that do not count.

    Raises
    ------
    InputError
        There is no history, or it cannot be read.
    """
    on_machine, rows, near = _measurements(db, subject)
    speedups: dict[str, list[tuple[float, float]]] = {}
    for row in on_machine:
        if len(row.rules) == 1 and row.expected is not None and row.speedup is not None:
            speedups.setdefault(row.rules[0], []).append((row.expected, row.speedup))
    remarks = []
    if subject.machine is None:
        remarks.append("Measurements in a history are stored by machine: name the machine with --system.")
    elif rows and not near:
        scales = sorted({row.processes for row in rows if row.processes is not None})
        at = ", ".join(f"{scale:,}" for scale in scales) or "an unknown number of"
        remarks.append(
            f"Measurements on this machine with {at} processes are not used for {subject.processes or 0:,}: "
            f"the scales differ by more than a factor of {SCALE:g}."
        )
    return with_measured(advice, [_trial(row, subject) for row in near], remarks, speedups)


def trials_of(db: PathLike, subject: Subject) -> list[Trial]:
    """Trials of the same application on the same machine at a comparable scale, the most similar first."""
    return [_trial(row, subject) for row in _measurements(db, subject)[2]]


def check_history(db: PathLike) -> None:
    """Raise InputError if there is no history, or it cannot be read."""
    with Store(db).reading():
        pass


def open_history(db: PathLike) -> None:
    """Create the history if it is missing, and check that a session can be added to it.

    Raises
    ------
    InputError
        The history cannot be written, is another program's database, or is anonymised.
    """
    store = Store(db)
    with store.writing(make=True) as connection:
        refuse_other_names(read.fact(connection, "names"), PlainNames(), store)


def keep_session(db: PathLike, tuned: Tuned, state: Path) -> int:
    """Add a session's measurements to a history; return the number of settings."""
    rows = measurements_of(tuned, state.owner(), where=state)
    with Store(db).writing(make=True) as connection:
        write.add_measurements(connection, rows)
    return len(rows)


def _measurements(db: PathLike, subject: Subject) -> tuple[list[Measurement], list[Measurement], list[Measurement]]:
    """Those on the same machine, those of the same application among them, and of these those at a near scale."""
    with Store(db).reading() as connection:
        rows = [] if subject.machine is None else read.measurements(connection, subject.machine)
    own = [row for row in rows if row.application is not None and row.application == subject.application]
    return rows, own, comparable(own, subject.processes, subject.nodes)


def _trial(row: Measurement, subject: Subject) -> Trial:
    same = {name: getattr(row, name) for name in ("verdict", "speedup", "low", "high", "runs", "processes", "nodes")}
    measured = Measured(
        **same, date=datetime.fromtimestamp(row.ended, UTC).date().isoformat(), machine=row.machine or "",
        this_processes=subject.processes, this_nodes=subject.nodes,
    )  # fmt: skip
    return Trial(Setting.model_validate_json(row.setting), measured)
