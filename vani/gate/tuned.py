"""Checks whether a run still uses a setting that `vani tune` proved, and is still as fast."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Literal

from vani.errors import InputError
from vani.gate.checks import Outcome, outcome
from vani.models.io_time import io_seconds
from vani.models.measured_gain import noise_of
from vani.schema.check import Source
from vani.schema.damage import overhead_of
from vani.schema.profile import FileEntity, Profile
from vani.schema.tuned import Tuned, TunedRun
from vani.systems.layout_commands import requested
from vani.units import counted, format_bytes, format_seconds

NOISES: Final = 3.0
"""Relative deviations of the tuned runs by which a run may exceed the slowest of them (our choice)."""
_TODO: Final = "sh tuned.sh --apply, and its --job lines in the job script; or run vani tune again"


@dataclass(frozen=True)
class TunedCheck:
    """A proven result and its file.

    Raises
    ------
    InputError
        The session proved nothing.
    """

    tuned: Tuned
    source: Source

    def __post_init__(self) -> None:
        result = self.tuned.result
        if result is None or result.verdict != "proven":
            raise InputError(
                "proved no setting, so a run cannot be compared",
                where=self.source.path,
                todo="leave out --tuned, or name a tuned.yaml of a session that ended with `Proven`",
            )


def judge_tuned(check: TunedCheck, profile: Profile) -> list[Outcome]:
    """Compare a run with the tuned runs, by I/O time if both have it, and with the proven layout and hints."""
    assert check.tuned.result is not None
    setting = check.tuned.setting(check.tuned.result.candidates)
    outcomes = [_io_time(check.tuned, profile) or _time(check.tuned, profile)]
    if setting.layout is not None:
        outcomes.append(_layout(setting.layout, check.tuned.data, profile))
    outcomes += _hints(setting.hints, profile)
    if setting.environment:
        names = ", ".join(setting.environment)
        outcomes.append(_outcome("environment", "unknown", f"a profile does not show variables ({names})"))
    return outcomes


def _io_time(tuned: Tuned, profile: Profile) -> Outcome | None:
    """Compare I/O times; None unless the same tool, whose cost is in both, measured this and all tuned runs."""
    assert tuned.result is not None
    after = _runs(tuned, tuned.result.candidates)
    tools = {trace.tool for trace in profile.traces}
    seconds = io_seconds(profile)
    is_known = all(run.io_s is not None and run.io is not None and {run.io.source} == tools for run in after)
    if not after or not is_known or seconds is None or _other_run(tuned, profile) is not None:
        return None
    times = [[run.io_s for run in runs if run.io_s is not None] for runs in (after, _runs(tuned, []))]
    return _compared(tuned, "io_time", "I/O of the run took", seconds, times, "workflow.io.busy_s.total")


def _time(tuned: Tuned, profile: Profile) -> Outcome:
    other, slow = _other_run(tuned, profile), overhead_of(profile)
    if slow is not None:
        return _outcome("time", "unknown", f"times of this run are too long, because {slow[0]} slowed it down")
    if other is not None:
        return _outcome("time", "unknown", other)
    seconds = profile.workflow.runtime_s
    if seconds is None:
        why = profile.provenance.get("workflow.runtime_s", "the profile has no times")
        return _outcome("time", "unknown", f"the run time is not known ({why})")
    assert tuned.result is not None
    runs = [_runs(tuned, tuned.result.candidates), _runs(tuned, [])]
    if not runs[0]:
        return _outcome("time", "unknown", "the document has no times of the tuned setting")
    times = [[run.seconds for run in each if run.seconds is not None] for each in runs]
    return _compared(tuned, "time", "the run took", seconds, times, "workflow.runtime_s")


def _compared(
    tuned: Tuned, name: str, what: str, seconds: float, times: Sequence[Sequence[float]], attribute: str
) -> Outcome:
    """Compare this run's seconds with the tuned runs; `times` has those of the tuned and of the untuned runs."""
    after, before = times
    noise = noise_of(times) if name == "io_time" else tuned.result.noise if tuned.result is not None else None
    most = max(after) * (1 + NOISES * (noise or 0.0))
    span = f"{format_seconds(min(after))} to {format_seconds(max(after))}"
    text = f"{what} {format_seconds(seconds)}; tuned runs took {span}, and up to {format_seconds(most)} is noise"
    limit = f"<= {most:.4g}"
    if seconds <= most:
        return _outcome(name, "pass", text, value=seconds, limit=limit, attribute=attribute)
    if before:
        text += f" (before tuning: {format_seconds(min(before))} to {format_seconds(max(before))})"
    return _outcome(name, "fail", text, value=seconds, limit=limit, attribute=attribute)


def _other_run(tuned: Tuned, profile: Profile) -> str | None:
    """Why times of this run cannot be compared with the tuned ones; None if they can."""
    if tuned.application is not None and profile.apps and tuned.application != profile.application:
        return f"this run is of {profile.application}, and {tuned.application} was tuned"
    for noun, before, now in (
        ("process", tuned.processes, profile.workflow.processes),
        ("node", tuned.nodes, profile.job.nodes),
    ):
        if before is not None and now is not None and before != now:
            return f"this run has {counted(now, noun)}, and {before:,} were tuned"
    return None


def _runs(tuned: Tuned, candidates: Sequence[int]) -> list[TunedRun]:
    return [
        run
        for run in tuned.runs
        if run.outcome == "ended" and run.seconds is not None and run.candidates == [*candidates]
    ]


def _layout(options: str, data: str, profile: Profile) -> Outcome:
    try:
        # -1 means all targets, and the profile does not have their number.
        wanted = {name: value for name, value in requested(options).items() if value > 0}
    except ValueError:
        wanted = {}
    if not wanted or "components" in wanted:
        return _outcome("layout", "unknown", f"the layout {options} of files cannot be compared")
    known = [file for file in profile.files if file.stripe_count is not None and file.io.bytes.written]
    inside = [file for file in known if PurePath(file.path).is_relative_to(data)]
    files = inside or known
    if not files:
        why = "the profile has no layout of files (a Darshan log with its Lustre module, or job.yaml, gives it)"
        return _outcome("layout", "unknown", why)
    wrong = [file for file in files if any(getattr(file, name) != value for name, value in wanted.items())]
    if not wrong:
        which = "the file that was written is stored"
        if len(files) > 1:
            which = f"all {len(files):,} files that were written are stored"
        return _outcome("layout", "pass", f"{which} with {options}")
    first = wrong[0]
    text = f"{first.path} is {_place(first, wanted)}, and {options} was tuned"
    more = f" ({len(wrong):,} of {counted(len(files), 'file')})" if len(files) > 1 else ""
    return _outcome("layout", "fail", text + more, target=first.path, limit=options)


def _place(file: FileEntity, wanted: dict[str, int]) -> str:
    targets = f"on {counted(file.stripe_count or 0, 'target')}"
    if "stripe_size" in wanted and file.stripe_size is not None:
        return f"{targets} in stripes of {format_bytes(file.stripe_size)}"
    return targets


def _hints(hints: dict[str, str], profile: Profile) -> Iterator[Outcome]:
    """Compare hints. Those that the program sets override ROMIO_HINTS; others do not appear in a profile."""
    by_program: dict[str, str] = {}
    for interface in profile.interfaces or ():
        by_program |= interface.hints or {}
    unseen = [name for name in hints if name not in by_program]
    for name, value in hints.items():
        if name in by_program:
            same = by_program[name] == value
            text = f"the program sets the hint {name} to {by_program[name]} itself"
            status: Literal["pass", "fail"] = "pass" if same else "fail"
            ending = ", as was tuned" if same else f", and {value} was tuned"
            yield _outcome(f"hints.{name}", status, text + ending, value=by_program[name], limit=value)
    if unseen:
        yield _outcome(
            "hints",
            "unknown",
            f"the profile does not show {', '.join(unseen)}: only hints that the program sets itself leave a trace",
            todo="compare what MPI prints: vani apply tuned.yaml --job-output FILE",
        )


def _outcome(
    name: str, status: Literal["pass", "fail", "unknown"], message: str, *, todo: str | None = None, **more: Any
) -> Outcome:
    check = f"tuned.{name}"
    todo = _TODO if status == "fail" else todo
    return outcome(check, "tuned", status, "error", message, against=check, todo=todo, **more)
