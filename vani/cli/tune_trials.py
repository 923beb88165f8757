"""Trials of `vani tune`: settings from advice in order, the I/O time of each run, and the lines for kept settings."""

import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

import vani.tune
from vani.advisors.measured import Trial, trial_of
from vani.advisors.mpiio import hint_lines
from vani.cli.apply import run_script, undo_script
from vani.cli.profile import profile as profile_of
from vani.collect.file_systems import layout_problem
from vani.collect.tracing.launchers import launcher_of, mapped, programs_at
from vani.collect.tracing.line import TracedLine, is_static, new_folder, preloaded_line
from vani.collect.tracing.trace import trace
from vani.collect.tracing.tracers import logs_since
from vani.errors import InputError, VaniError
from vani.kernels.build import compile_units, compiler
from vani.models.io_time import io_seconds, io_time
from vani.readers.programs import program_behind
from vani.render.script import Step, layout_line, missing_program, render_steps
from vani.render.wording import measured_gain
from vani.schema.advice import Advice, Expected, Measured, TunableSetting
from vani.schema.profile import Profile
from vani.schema.tuned import Candidate, NotTried, RunIO, Setting, Tuned, TunedSetting
from vani.tune.session import Line
from vani.units import counted

TRIAL: Final = "of a setting that no rule recommends"
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
                    most_saved_s=_most_saved_s(item.gain),
                    expected_run=_of_run(item.gain, program.runtime_s),
                    setting=setting,
                )
                while len(rounds) <= index:
                    rounds.append([])
                if all(candidate.setting != known.setting for known in rounds[index]):
                    rounds[index].append(candidate)
        if why:
            not_tried.append(NotTried(rule=item.rule, why=why))
    candidates: dict[str, Candidate] = {}
    for values in rounds:
        for candidate in values:
            candidates.setdefault(candidate.setting.label, candidate)
    return [*candidates.values()], not_tried


def with_trials(known: Sequence[Candidate], layouts: Sequence[str], command: Sequence[str]) -> list[Candidate]:
    """Candidates of the advice, and settings that no rule names: layouts of the output folder, and settings of the MPI.

    Where the advice has a layout, only the last one in its direction is tried besides, before its second choice: all
    targets, or one.
    """
    advised = [number for number, candidate in enumerate(known) if candidate.setting.layout]
    place = len(known)
    if advised:
        rules = [known[number].rule for number in advised]
        place = next((number for at, number in enumerate(advised) if known[number].rule in rules[:at]), place)
        is_single = any((known[number].setting.layout or "").endswith("-c 1") for number in advised)
        layouts = [words for words in layouts if (words == "-c 1") == is_single][:1]
    trials = [("the file system offers this layout", Setting(layout=words)) for words in layouts]
    libraries = io_libraries(command)
    for family, why, settings in _TRIALS:
        library = next((name for name in libraries if re.match(family, name)), None)
        trials += [(why.format(library), setting) for setting in settings if library is not None]
    excluded = [candidate.setting for candidate in known]
    if any(setting.hints for setting in excluded):
        excluded += [*_ROMIO, *_OMPIO]
    added = [
        Candidate(rule="trial", name=TRIAL, reason=f"{why}; no rule can judge it", expected=None, setting=setting)
        for why, setting in trials
        if setting not in excluded and not os.environ.keys() & setting.environment
    ]
    of_folder = [candidate for candidate in added if candidate.setting.layout]
    return [*known[:place], *of_folder, *known[place:], *(item for item in added if item not in of_folder)]


_ROMIO: Final = (
    Setting(hints={"romio_cb_write": "enable"}),
    Setting(hints={"romio_ds_write": "disable"}),
    Setting(hints={"cb_buffer_size": "16777216"}),
)
_OMPIO: Final = (
    Setting(environment={"OMPI_MCA_io_ompio_num_aggregators": "4"}),
    Setting(environment={"OMPI_MCA_io_ompio_bytes_per_agg": "16777216"}),
    Setting(environment={"OMPI_MCA_io": "romio341"}),
)
_SUBFILES: Final = (
    Setting(environment={"H5FD_SUBFILING_IOC_PER_NODE": "4"}),
    Setting(environment={"H5FD_SUBFILING_STRIPE_SIZE": "4194304"}),
)
_HDF5: Final = r"libhdf5|libnetcdf|h5py|netCDF4|tables"
_TRIALS: Final = (
    (r"libmpi(ch|fort|_intel|cxx)?\.so\.1\d|libmpi(ch)?_\w+\.so|libmpich|MPICH$", "the program uses {}", _ROMIO),
    (r"libmpi(_\w+)?\.so\.[2-9]\d|Open MPI$", "the program uses {}", _OMPIO),
    (r"H5Pset_fapl_subfiling", "the program writes HDF5 subfiles", _SUBFILES),
    (
        _HDF5,
        "the program uses {}: HDF5 keeps its files in memory until they are flushed or closed",
        (Setting(environment={"HDF5_DRIVER": "core"}),),
    ),
)
"""Settings by the names of libraries: of ROMIO (MPICH and its relatives), of OMPIO (Open MPI), and of HDF5
(H5FDsubfiling.h and H5FDcore.c of HDF5 1.14)."""
_MAX_PROGRAM: Final = 1 << 26
_MAX_SCRIPT: Final = 1 << 20
"""Sizes in bytes up to which programs and scripts are searched."""
_LINKED: Final = rb"\0(lib(?:mpi|hdf5|netcdf)[\w.+-]*\.so[.\d]*|H5Pset_fapl_subfiling)(?=\0)"
_IMPORTED: Final = rb"(?m)^\s*(?:import|from) +(mpi4py|h5py|netCDF4|tables)\b"


def io_libraries(command: Sequence[str]) -> list[str]:
    """Libraries for I/O that a command's programs name in their dynamic sections, and that its Python scripts import.

    For scripts that import mpi4py, the launcher names the MPI. HDF5 is left out where several processes may share a
    file.
    """
    libraries: dict[str, None] = {}
    for word in command:
        path = Path((shutil.which(word) if "/" not in word else None) or word)
        if not path.is_file() or path.stat().st_size > _MAX_PROGRAM:
            continue
        content = path.read_bytes() if os.access(path, os.R_OK) else b""
        # The names of needed libraries are in the dynamic string table.
        is_program = content[:4] == b"\x7fELF"
        names = re.findall(_LINKED if is_program else _IMPORTED, content if is_program else content[:_MAX_SCRIPT])
        libraries.update((name.decode("ascii"), None) for name in names)
    try:
        launcher = launcher_of(command[program_behind(command) :], os.environ) if command else None
    except InputError:
        launcher = None
    if launcher is not None and "mpi4py" in libraries:
        libraries[launcher.name] = None
    is_parallel = launcher is not None or any(name.startswith(("libmpi", "mpi4py")) for name in libraries)
    return [name for name in libraries if not (is_parallel and re.match(_HDF5, name))]


def in_order(candidates: Sequence[Candidate], trials: Sequence[Trial]) -> tuple[list[Candidate], list[NotTried]]:
    """Candidates proven earlier first, and without those that did not help."""
    proven, others, not_tried = [], [], []
    for candidate in candidates:
        trial = trial_of(candidate.setting, trials)
        if trial is None or trial.measured.verdict == "not_proven":
            others.append(candidate)
        elif trial.measured.helps:
            proven.append(candidate.model_copy(update={"most_saved_s": None}))
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


def _most_saved_s(gain: Expected | None) -> float | None:
    """Most seconds of the run that a recommendation expects to save; None if it gives no number."""
    return gain.before * (1 - 1 / gain.high) if gain is not None and gain.before is not None and gain.high else None


def kept_settings(tuned: Tuned, candidates: Sequence[int]) -> list[TunedSetting]:
    """Lines for the kept settings, none of which excludes another."""
    return [
        TunedSetting(rule=item.rule, name=item.name, reason=item.reason, apply=[*_lines(item.setting, tuned)])
        for item in (tuned.candidates[index] for index in candidates)
    ]


def _lines(setting: Setting, tuned: Tuned) -> Iterator[str]:
    if setting.layout is not None:
        yield layout_line(setting.layout, tuned.data)
    if setting.hints:
        yield from hint_lines(setting.hints)
        if setting.ompio:
            yield "# job script, Open MPI with its own MPI-IO (ompi_info --param io ompio --level 9):"
    for name, value in (setting.ompio | setting.environment).items():
        yield f"export {name}={shlex.quote(value)}"
    for source, near in setting.stage_in.items():
        yield f"# job script, before the program, which reads $near_input in place of {source}:"
        yield f"near_input=$(mktemp -d {shlex.quote(near)}/vani-XXXXXX)"
        yield f'cp -R -p {shlex.quote(source)}/. "$near_input"/'
        yield "# and after it:"
        yield 'rm -r "$near_input"'
    if setting.stage_out is not None:
        yield f"# job script, before the program, which writes to $near_output in place of {tuned.data}:"
        yield f"near_output=$(mktemp -d {shlex.quote(setting.stage_out)}/vani-XXXXXX)"
        yield "# and after it, also where it failed:"
        yield f'cp -R -p "$near_output"/. {shlex.quote(tuned.data)}/ && rm -r "$near_output"'
    if setting.mapping is not None:
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
class TracedRuns:
    """Runs each command under a tracer; the trace is removed once its profile, `run-N.json`, has been written."""

    tracer: IOTracer
    state: Path

    def line(self, number: int, command: Sequence[str], environment: Mapping[str, str]) -> Line:
        # Remove what a killed run left behind.
        shutil.rmtree(self._folder(number), ignore_errors=True)
        planned = trace(command, output=self._folder(number), tracer=self.tracer, dry_run=True, environment=environment)
        line = TracedLine(planned.tracer, planned.words, planned.variables)
        new_folder(planned.folder, line, command)
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


_SOURCE: Final = Path(vani.tune.__file__).with_name("timer.c")
_MAGIC: Final = b"vanitim1"
_HEAD: Final = np.dtype([("magic", "S8"), ("kinds", "<i8", 3), ("mapped", "<i8"), ("intervals", "<i8")])
_NS: Final = 1e9


@dataclass
class TimedRuns:
    """Measures each run by the logs that Darshan wrote for it, or else by the preloaded timer.

    Parameters
    ----------
    state
        Folder for the compiled timer and what it writes.
    """

    state: Path
    _begin_s: float = 0.0
    _why: str = ""

    def line(self, number: int, command: Sequence[str], environment: Mapping[str, str]) -> Line:
        folder, self._begin_s = self._folder(number), time.time()
        # Remove what a killed run left behind.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            library = self._library()
            static = _static_program(command, environment)
            self._why = "" if static is None else f"{static} is linked statically: no timer can be preloaded"
            line = preloaded_line("timer", command, library, folder, environment, program_behind(command))
            folder.mkdir()
        except (InputError, OSError) as error:
            self._why = f"the timer cannot be used: {error}"
            return list(command), dict(environment)
        return line.words, {**environment, **line.variables}

    def measured(self, number: int) -> tuple[float, RunIO] | str:
        logs, folder = logs_since(self._begin_s, os.environ), self._folder(number)
        by_darshan = logs if isinstance(logs, str) else _measured(logs, "darshan")
        timed = self._why or timer_result(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(by_darshan, str):
            return f"{by_darshan}; {timed}" if isinstance(timed, str) else timed
        return by_darshan

    def _folder(self, number: int) -> Path:
        return self.state / f"run-{number}.timer"

    def _library(self) -> Path:
        """The timer, compiled once per session. Raises OSError if it cannot be compiled."""
        library = self.state / "timer.so"
        if not library.is_file():
            command = compiler()
            if command is None:
                raise OSError("no C compiler (cc) is installed")
            compile_units(command, [_SOURCE], library, ["-ldl"])
        return library


def timer_result(folder: Path) -> tuple[float, RunIO] | str:
    """I/O time of a run (s) and its parts, from the files of its processes; or why it is unknown."""
    intervals, kinds, mapped = [], np.zeros(3), 0
    for path in folder.iterdir():
        content = path.read_bytes()
        if len(content) < _HEAD.itemsize or content[:8] != _MAGIC:
            continue
        head = np.frombuffer(content, _HEAD, count=1)[0]
        rows = np.frombuffer(content, "<i8", offset=_HEAD.itemsize)
        count = min(max(int(head["intervals"]), 0), len(rows) // 2)
        intervals.append(rows[: 2 * count].reshape(-1, 2))
        kinds = np.maximum(kinds, head["kinds"] / _NS)
        mapped += int(head["mapped"])
    if not intervals:
        return "no process of the run loaded the timer"
    merged = np.concatenate(intervals)
    merged = merged[np.argsort(merged[:, 0])]
    ends = np.maximum.accumulate(merged[:, 1])
    # Time within an interval that no earlier one has covered.
    covered = np.concatenate([merged[:1, 0], np.maximum(ends[:-1], merged[1:, 0])])
    seconds = float(np.maximum(ends - covered, 0).sum() / _NS)
    read, write, metadata = (round(min(value, seconds), 6) for value in kinds.tolist())
    most = None if mapped else round(seconds, 6)
    return seconds, RunIO(source="timer", read_s=read, write_s=write, metadata_s=metadata, most_s=most)


def _static_program(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The command's program if it is linked statically, else None."""
    program = list(command[program_behind(command) :])
    launcher = launcher_of(program, environment)
    if launcher is not None:
        program = program[programs_at(program, launcher)[0] :]
    path = shutil.which(program[0], path=environment.get("PATH", os.defpath))
    return program[0] if path is not None and is_static(Path(path)) else None
