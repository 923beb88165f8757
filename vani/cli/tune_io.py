"""The I/O time of each run of `vani tune`, from the log that Darshan writes, or from a tracer on request."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vani.cli.profile import profile as profile_of
from vani.collect.tracing.darshan_logs import logs_since
from vani.collect.tracing.line import TracedLine
from vani.collect.tracing.run import begin_folder
from vani.collect.tracing.trace import trace
from vani.errors import InputError, VaniError
from vani.models.io_time import io_seconds, io_time
from vani.schema.tuned import RunIO

if TYPE_CHECKING:
    from vani.schema.profile import Profile

IOTracer = Literal["recorder", "strace", "dftracer"]


@dataclass
class DarshanLogs:
    """Finds the logs that Darshan wrote for a run; does not affect the run."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _begin_s: float = 0.0

    def line(
        self, number: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        del number
        self._begin_s = time.time()
        return list(command), dict(environment)

    def measured(self, number: int) -> tuple[float, RunIO] | str:
        del number
        logs = logs_since(self._begin_s, self.environment)
        return logs if isinstance(logs, str) else _measured(logs, "darshan")


@dataclass
class TracedRuns:
    """Runs each command under a tracer; the trace is removed once its profile, `run-N.json`, has been written."""

    tracer: IOTracer
    state: Path

    def line(
        self, number: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        # Remove what a killed run left behind.
        shutil.rmtree(self._folder(number), ignore_errors=True)
        planned = trace(command, output=self._folder(number), tracer=self.tracer, dry_run=True, environment=environment)
        line = TracedLine(planned.tracer, planned.words, planned.variables)
        begin_folder(planned.folder, line, command)
        return line.words, {**environment, **line.variables}

    def measured(self, number: int) -> tuple[float, RunIO] | str:
        folder = self._folder(number)
        done = _measured([folder], self.tracer, self.state / f"run-{number}.json")
        shutil.rmtree(folder, ignore_errors=True)
        return done

    def _folder(self, number: int) -> Path:
        return self.state / f"run-{number}.trace"


def _measured(
    traces: Sequence[Path], source: Literal["darshan", IOTracer], saved: Path | None = None
) -> tuple[float, RunIO] | str:
    try:
        profile = profile_of(*traces, together=len(traces) > 1)
        if saved is not None:
            profile.save(saved)
    except InputError as error:
        return f"{error.where}: {error.what}" if error.where else error.what
    except (VaniError, OSError) as error:
        return f"no profile of the run ({error})"
    return io_of(profile, source)


def io_of(profile: Profile, source: Literal["darshan", IOTracer]) -> tuple[float, RunIO] | str:
    """I/O time of a run (s) and its parts, from its profile; or why it is unknown."""
    busy, seconds = profile.workflow.io.busy_s, io_seconds(profile)
    if seconds is None or busy.total is None:
        return profile.provenance.get("workflow.io.busy_s.total", "the profile has no times")
    times = io_time(profile)
    hidden = profile.verdict is None or profile.verdict.is_lower_bound
    writes = min((busy.write or 0.0) + (busy.sync or 0.0), busy.total)
    return seconds, RunIO(
        source=source,
        read_s=_rounded(busy.read),
        write_s=None if busy.write is None else _rounded(writes),
        metadata_s=_rounded(busy.metadata),
        most_s=None if hidden else _rounded(max(times.calls_most_s, busy.total)),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
