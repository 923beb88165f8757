"""A session of `vani tune`: a series of runs. It is saved after each step and restores everything at the end."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from vani.errors import InputError
from vani.schema.tuned import RunIO, Setting, Tuned, TunedRun
from vani.tune import trial
from vani.tune.search import next_candidates, not_worth_a_run, result_of

_NEAR = "near.txt"
DOCUMENT = "tuned.yaml"
"""The document in the state folder."""
_PATIENCE = 3.0
_LEAST_PATIENCE_S = 60.0
"""A run is stopped after `_PATIENCE` times a run without settings, plus a minute: it cannot be the best any more."""


class Layouts(Protocol):
    """Sets and restores layouts of folders."""

    def set(self, folder: Path, options: str) -> str | None:
        """Set the layout of new files in a folder. Return why it was not applied, or None if it was."""

    def undo(self) -> None:
        """Restore all layouts that are still set, including those of a killed session."""


class IOTimes(Protocol):
    """Measures the I/O time of runs."""

    def line(
        self, number: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Command and environment for run `number`; called just before it starts."""

    def measured(self, number: int) -> tuple[float, RunIO] | str:
        """I/O time of a finished run in seconds, with its parts, or why it is unknown."""


@contextmanager
def locked(state: Path) -> Iterator[int]:
    """Lock a state folder for this process and its runs; yields the descriptor.

    Raises
    ------
    InputError
        Another session, or a run that outlived one, has the lock.
    """
    with (state / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "a run of this session is still in progress", where=state, todo="wait for it, or stop it"
            ) from None
        except OSError:
            # The file system has no locks: only the user can know.
            pass
        yield file.fileno()


@dataclass
class Session:
    """A session and what it needs to run.

    Parameters
    ----------
    tuned
        The document so far.
    state
        Folder of the document and the logs.
    reported
        Finds the MPI hints reported in a log, with the value for each file.
    progress
        Called with the document after each run.
    io_times
        Measures the I/O time of runs. None: it stays unknown.
    mapped
        Adds the order of processes over nodes to a launcher's command; returns None if it is not a launcher.
    """

    tuned: Tuned
    state: Path
    layouts: Layouts
    reported: Callable[[str], Mapping[str, Sequence[str]]]
    progress: Callable[[Tuned], None] | None = None
    io_times: IOTimes | None = None
    mapped: Callable[[Sequence[str], Literal["block", "cyclic"]], list[str] | None] | None = None

    def carry_out(self, lock: int, most_runs: int | None = None) -> Tuned:
        """Run until the search is over, or `most_runs` more. Return the document, with the result if it is over.

        Raises
        ------
        InputError
            Something that the session needs fails. Measurements are kept and everything is restored.
        """
        with trial.signals_waiting():
            self._tidy()
        runs = 0
        while (candidates := next_candidates(self.tuned)) is not None:
            if runs == most_runs:
                return self.tuned
            self._run(candidates, lock)
            runs += 1
        left_out = [item for item in not_worth_a_run(self.tuned) if item not in self.tuned.not_tried]
        ended = self.tuned.ended or datetime.now(UTC).isoformat(timespec="seconds")
        self._keep(result=result_of(self.tuned), not_tried=[*self.tuned.not_tried, *left_out], ended=ended)
        return self.tuned

    def _tidy(self) -> None:
        """Mark the run of a killed session as interrupted and restore the layout."""
        self.layouts.undo()
        trial.remove_noted(self.state / _NEAR)
        for run in self.tuned.runs:
            if run.outcome == "running":
                self._end(run, outcome="interrupted", remark="the session was killed")
        if self.tuned.fresh == "emptied":
            trial.begin_folder(Path(self.tuned.data), is_new=False)

    def _run(self, candidates: list[int], lock: int) -> None:
        tuned, number = self.tuned, len(self.tuned.runs) + 1
        is_new = tuned.fresh == "subfolder"
        folder = trial.free_folder(Path(tuned.data), number) if is_new else Path(tuned.data)
        run = TunedRun(number=number, candidates=candidates, folder=str(folder))
        if not is_new:
            # Before anything is set: existing files must never be removed below.
            trial.begin_folder(folder, is_new=False)
        self._keep(runs=[*tuned.runs, run])
        changes: dict[str, Any] = {"outcome": "interrupted"}
        try:
            if is_new:
                trial.begin_folder(folder, is_new=True)
            changes = self._measured(run, tuned.setting(candidates), folder, lock)
        finally:
            # Callbacks run from last to first, each even if another fails.
            with trial.signals_waiting(), ExitStack() as after:
                after.callback(self._end, run, **changes)
                if not is_new:
                    after.callback(trial.empty, folder)
                after.callback(trial.remove_noted, self.state / _NEAR)
                after.callback(self.layouts.undo)
        if self.progress is not None:
            self.progress(self.tuned)

    def _measured(self, run: TunedRun, setting: Setting, folder: Path, lock: int) -> dict[str, Any]:
        """Carry out a run. Return the changes to its entry in the document."""
        tuned, log = self.tuned, self.state / f"run-{run.number}.log"
        if setting.layout is not None:
            with trial.signals_waiting():
                why = self.layouts.set(folder, setting.layout)
            if why is not None:
                return {"outcome": "not_applied", "remark": why}
        near = trial.Near(setting, folder, self.state / _NEAR)
        begin = time.perf_counter()
        try:
            near.begin()
        except OSError as error:
            return {"outcome": "not_applied", "remark": f"cannot be copied to near storage ({error.strerror or error})"}
        copying_s = time.perf_counter() - begin
        environment = trial.environment_of(setting, near.output, self.state / f"run-{run.number}.hints")
        if tuned.prepare is not None and (status := trial.launch_shell(tuned.prepare, environment, log, lock=lock)):
            raise InputError(
                f"--prepare ended with status {status}", where=log, todo="fix it, then run vani tune --resume"
            )
        first = next((known.seconds for known in tuned.runs if known.outcome == "ended"), None)
        limit_s = None if first is None else _PATIENCE * first + _LEAST_PATIENCE_S
        words = near.words(trial.command_in(tuned.command, near.output))
        if setting.mapping is not None and self.mapped is not None:
            words = self.mapped(words, setting.mapping) or words
        if self.io_times is not None:
            words, environment = self.io_times.line(run.number, words, environment)
        ended = trial.launch(words, environment, log, limit_s=limit_s, lock=lock)
        begin = time.perf_counter()
        try:
            near.bring_back()
        except OSError as error:
            return {"outcome": "failed", "remark": f"its output cannot be copied ({error.strerror or error})"}
        copying_s += time.perf_counter() - begin
        environment["VANI_DATA"] = str(folder)
        printed = self.reported(log.read_text(encoding="utf-8", errors="replace")) if setting.hints else {}
        hints = {
            name: value if value in printed[name] else printed[name][-1]
            for name, value in setting.hints.items()
            if name in printed
        }
        seconds = ended.seconds + (copying_s if setting.stage_in or setting.stage_out else 0.0)
        changes: dict[str, Any] = {"seconds": round(seconds, 6), "status": ended.status, "hints": hints}
        if ended.too_slow:
            return changes | {"outcome": "too_slow", "remark": f"stopped after {ended.seconds:.0f} s"}
        if ended.status:
            return changes | {"outcome": "failed", "remark": f"ended with status {ended.status}, see {log}"}
        if tuned.verify is not None and (status := trial.launch_shell(tuned.verify, environment, log, lock=lock)):
            return changes | {
                "outcome": "not_verified", "remark": f"--verify ended with status {status}, see {log}"
            }  # fmt: skip
        if tuned.time is not None:
            text = trial.printed_by(tuned.time, environment | {"VANI_LOG": str(log)}, lock=lock)
            try:
                changes["seconds"] = trial.seconds_in(text)
            except ValueError as error:
                raise InputError(
                    f"printed {error}, where seconds should be",
                    where="--time",
                    todo="fix it, start again, and test it first: $VANI_LOG is what the program printed",
                ) from None
        return changes | self._io(run.number) | {"outcome": "ended", "remark": self._remark(setting, hints, folder)}

    def _io(self, number: int) -> dict[str, Any]:
        measured = self.io_times.measured(number) if self.io_times is not None else "is not measured (--io-time off)"
        if isinstance(measured, str):
            return {"io_why": measured}
        return {"io_s": round(measured[0], 6), "io": measured[1]}

    def _remark(self, setting: Setting, hints: Mapping[str, str], folder: Path) -> str:
        wrong = [f"{name} {hints[name]}" for name in hints if hints[name] != setting.hints[name]]
        if wrong:
            return f"MPI took {', '.join(wrong)}"
        return "" if any(folder.iterdir()) else f"wrote nothing to {folder}: does it write there ({{data}})?"

    def _end(self, run: TunedRun, **changes: Any) -> None:
        ended = run.model_copy(update=changes)
        self._keep(runs=[ended if known.number == run.number else known for known in self.tuned.runs])

    def _keep(self, **changes: Any) -> None:
        self.tuned = self.tuned.model_copy(update=changes)
        self.tuned.save(self.state / DOCUMENT)
