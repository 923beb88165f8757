"""Trials of `vani tune`: settings from advice in order, the I/O time of each run, and the lines for kept settings."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vani.advisors.measured import trial_of
from vani.advisors.mpiio import hint_lines
from vani.cli.apply import run_script, undo_script
from vani.cli.profile import profile as profile_of
from vani.collect.file_systems import layout_problem
from vani.collect.tracing.launchers import mapped
from vani.collect.tracing.line import TracedLine, begin_folder
from vani.collect.tracing.trace import trace
from vani.collect.tracing.tracers import logs_since
from vani.errors import InputError, VaniError
from vani.models.io_time import io_seconds, io_time
from vani.render.script import Step, layout_line, missing_program, render_steps
from vani.render.wording import measured_gain
from vani.schema.advice import Advice
from vani.schema.tuned import Candidate, NotTried, RunIO, Setting, Tuned, TunedSetting
from vani.units import counted

if TYPE_CHECKING:
    from vani.advisors.measured import Trial
    from vani.schema.advice import Expected, Measured, NoRecommendation, Recommendation, TunableSetting
    from vani.schema.profile import Profile


TRIAL: Final = "a trial"
"""Name of a candidate that no rule recommends."""


@dataclass(frozen=True)
class Program:
    """Facts about the program to tune: its command, nodes and time (s); None if unknown."""

    command: Sequence[str] = ()
    nodes: int | None = None
    runtime_s: float | None = None


def candidates_of(advice: Advice, data: Path, program: Program) -> tuple[list[Candidate], list[NotTried]]:
    """Settings worth trying, in the order of the advice: the first value of each setting before second ones."""
    rounds: list[list[Candidate]] = []
    not_tried = []
    for item in advice.recommendations:
        if not item.apply and not item.settings:
            continue
        why = None
        if item.measured is not None and not item.measured.helps:
            why = _not_again(item.measured)
        elif item.severity == "info":
            why = "hardly matters"
        elif not item.settings:
            why = "needs a change inside the program"
        for tunable in [] if why else item.settings:
            if refusal := _refusal(tunable, data, program):
                why = refusal
                continue
            for index, value in enumerate(tunable.values):
                setting = Setting.of_tunable(tunable, value)
                candidate = Candidate(
                    rule=item.rule,
                    name=item.name,
                    reason=item.reason,
                    expected=item.gain.speedup if item.gain else None,
                    saves_s=_saves_s(item),
                    is_faster=item.expected is not None or (item.measured is not None and item.measured.helps),
                    expected_run=_of_run(item.gain, program.runtime_s),
                    setting=setting,
                )
                while len(rounds) <= index:
                    rounds.append([])
                if all(candidate.setting != known.setting for known in rounds[index]):
                    rounds[index].append(candidate)
        if why:
            not_tried.append(NotTried(rule=item.rule, why=why))
    # Settings that a rule mentions without recommending them come last, since their effect is unknown.
    for silent in advice.no_recommendation:
        for tunable in silent.settings:
            if _refusal(tunable, data, program) is None:
                settings = [Setting.of_tunable(tunable, value) for value in tunable.values]
                rounds.append([_unknown(silent, setting) for setting in settings])
    candidates: dict[str, Candidate] = {}
    for values in rounds:
        for candidate in values:
            candidates.setdefault(candidate.setting.label, candidate)
    if not candidates and advice.system.name is None:
        why = "no machine is described: layouts of the folder need --system NAME or a system.yaml"
        not_tried.append(NotTried(rule="layouts", why=why))
    return [*candidates.values()], not_tried


def _unknown(silent: NoRecommendation, setting: Setting) -> Candidate:
    reason = f"no rule can judge this setting, so it was tried ({silent.why})"
    return Candidate(rule=silent.rule, name=TRIAL, reason=reason, expected=None, setting=setting)


def in_order(
    candidates: Sequence[Candidate], trials: Sequence[Trial]
) -> tuple[list[Candidate], list[NotTried]]:
    """Candidates proven earlier first, and without those that did not help."""
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
    return f"{text[:1].lower()}{text[1:]}; without --history, it is tried again"


def _of_run(gain: Expected | None, runtime_s: float | None) -> float | None:
    """Expected speedup of the whole run; None if it is unknown, or would leave no run time."""
    if gain is None or gain.before is None or gain.after is None or not runtime_s:
        return None
    left = runtime_s - (gain.before - gain.after)
    return runtime_s / left if left > 0 else None


def _refusal(tunable: TunableSetting, data: Path, program: Program) -> str | None:
    """Why a setting cannot be applied to this run; None if it can."""
    if tunable.kind == "layout" and not _is_within(tunable.folder, data):
        return f"sets the layout of {tunable.folder}, which is not in {data}"
    if tunable.kind == "stage_out" and not _is_within(tunable.folder, data):
        return f"copies {tunable.folder} to near storage, which is not in {data}"
    if tunable.kind == "stage_in" and not any(tunable.folder and tunable.folder in word for word in program.command):
        return f"copies {tunable.folder} to near storage, but the command does not name it"
    if tunable.kind in ("stage_in", "stage_out") and program.nodes != 1:
        nodes = "an unknown number of nodes" if program.nodes is None else counted(program.nodes, "node")
        return (
            "is tried only for runs on one node, because other nodes cannot see the copy: "
            f"this run has {nodes} (--nodes)"
        )
    if tunable.kind == "mapping" and mapped(program.command, "cyclic") is None:
        return "sets how a launcher places processes: the command starts with no known launcher, or already sets it"
    return None


def _is_within(folder: str | None, data: Path) -> bool:
    return folder is not None and Path(folder).absolute().resolve().is_relative_to(data.resolve())


def _saves_s(item: Recommendation) -> tuple[float, float, float] | None:
    """Seconds of the run that a recommendation saves: minimum, median, maximum; None if it gives no number."""
    gain = item.gain
    if gain is None or gain.before is None or not gain.speedup or not gain.low or not gain.high:
        return None
    low, median, high = (gain.before * (1 - 1 / speedup) for speedup in (gain.low, gain.speedup, gain.high))
    return low, median, high


def kept_settings(tuned: Tuned, candidates: Sequence[int]) -> list[TunedSetting]:
    """Lines for the kept settings: the last candidate's if several set the same layout or variable."""
    settings = []
    for position, index in enumerate(candidates):
        candidate = tuned.candidates[index]
        later = tuned.setting(list(candidates[position + 1 :]))
        lines = [*_lines(candidate.setting, later, tuned)]
        if lines:
            settings.append(
                TunedSetting(rule=candidate.rule, name=candidate.name, reason=candidate.reason, apply=lines)
            )
    return settings


def _lines(setting: Setting, later: Setting, tuned: Tuned) -> Iterator[str]:
    if setting.layout is not None and later.layout is None:
        yield layout_line(setting.layout, tuned.data)
    hints = {name: value for name, value in setting.hints.items() if name not in later.hints}
    if hints:
        yield from hint_lines(hints)
        ompio = Setting(hints=hints).ompio
        if ompio:
            yield "# job script, Open MPI with its own MPI-IO (ompi_info --param io ompio --level 9):"
            yield from (f"export {name}={shlex.quote(value)}" for name, value in ompio.items())
    for name, value in setting.environment.items():
        if name not in later.environment:
            yield f"export {name}={shlex.quote(value)}"
    for source, near in setting.stage_in.items():
        if source not in later.stage_in:
            yield f"# job script, before the program, which reads $near_input in place of {source}:"
            yield f"near_input=$(mktemp -d {shlex.quote(near)}/vani-XXXXXX)"
            yield f'cp -R -p {shlex.quote(source)}/. "$near_input"/'
            yield "# and after it:"
            yield 'rm -r "$near_input"'
    if setting.stage_out is not None and later.stage_out is None:
        yield f"# job script, before the program, which writes to $near_output in place of {tuned.data}:"
        yield f"near_output=$(mktemp -d {shlex.quote(setting.stage_out)}/vani-XXXXXX)"
        yield "# and after it, also where it failed:"
        yield f'cp -R -p "$near_output"/. {shlex.quote(tuned.data)}/ && rm -r "$near_output"'
    if setting.mapping is not None and later.mapping is None:
        yield "# job script: start the program like this"
        yield shlex.join(mapped(tuned.command, setting.mapping) or tuned.command)


@dataclass(frozen=True)
class ScriptedLayouts:
    """Sets layouts with the script that `vani advise --script` writes and `vani apply` runs."""

    state: Path

    def set(self, folder: Path, options: str) -> str | None:
        if (program := missing_program(options)) is not None:
            return f"{program} is not installed here"
        step = Step("vani tune", "tries this layout", [layout_line(options, folder)])
        try:
            run_script(render_steps([step], maker="vani tune"), self.state)
        except InputError as error:
            # For example more stripes than there are targets; other settings may work.
            return error.what
        problem = layout_problem(folder, options)
        return problem[0] if problem is not None and problem[1] is False else None

    def undo(self) -> None:
        if self.state.is_dir():
            undo_script(self.state)
            # Anything left belongs to a folder that the program removed.
            shutil.rmtree(self.state, ignore_errors=True)


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
