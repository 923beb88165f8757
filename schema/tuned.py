"""tuned.yaml: settings that `vani tune` tried by running a program, what was measured, and what was kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from vani.schema.advice import TunableSetting
from vani.schema.document import Document
from vani.schema.model import Model
from vani.units import lfs_size

LEAST_GAIN: Final = 0.02
"""Share of a run; a setting that saves less is not worth the runs that would prove it (our choice)."""


OMPIO: Final = {
    "cb_nodes": "OMPI_MCA_io_ompio_num_aggregators",
    "cb_buffer_size": "OMPI_MCA_io_ompio_bytes_per_agg",
}
"""Variables of Open MPI's own MPI-IO, which reads no hints of ROMIO, for the hints that mean the same (Open MPI 5.0,
documentation, section 11.9.1). They are for all files of a run."""


class Setting(Model):
    """A setting from outside a program."""

    layout: str | None = Field(
        default=None,
        description="options of `lfs setstripe` for the output folder, or for other file systems the whole command, "
        "to which the folder is appended; null leaves the layout unchanged",
    )
    hints: dict[str, str] = Field(default={}, description="MPI-IO hints by name")
    environment: dict[str, str] = Field(default={}, description="environment variables by name")
    stage_in: dict[str, str] = Field(
        default={},
        description="folders that are copied before the program starts, mapped to the folder below which each gets a "
        "new one",
    )
    stage_out: str | None = Field(
        default=None,
        description="folder below which the output is written to a new folder and from which it is copied when the "
        "program ends; null for no staging",
    )
    mapping: Literal["block", "cyclic"] | None = Field(
        default=None,
        description="placement of processes by the launcher. block: fills one node after another; cyclic: deals "
        "processes to nodes in turn; null leaves it unchanged",
    )

    @staticmethod
    def of_tunable(tunable: TunableSetting, value: Mapping[str, str]) -> Setting:
        """The setting that gives a tunable setting one of its values."""
        if tunable.kind == "layout":
            return Setting(layout=value.get("command", value.get("options")))
        if tunable.kind == "hints":
            return Setting(hints=dict(value))
        if tunable.kind == "environment":
            return Setting(environment=dict(value))
        if tunable.kind == "stage_in":
            return Setting(stage_in={tunable.folder or "": value["near"]})
        return Setting.model_validate({tunable.kind: value["near" if tunable.kind == "stage_out" else "order"]})

    def with_(self, other: Setting) -> Setting:
        """This setting combined with another one, which takes precedence."""
        return Setting(
            layout=other.layout or self.layout,
            hints=self.hints | other.hints,
            environment=self.environment | other.environment,
            stage_in=self.stage_in | other.stage_in,
            stage_out=other.stage_out or self.stage_out,
            mapping=other.mapping or self.mapping,
        )

    @property
    def parts(self) -> dict[tuple[str, ...], Setting]:
        """Single parts of the setting as separate settings, keyed by kind and value."""
        parts: dict[tuple[str, ...], Setting] = {}
        for field, value in self.model_dump(exclude_defaults=True).items():
            for name, text in value.items() if isinstance(value, dict) else [(None, value)]:
                key = (field, text) if name is None else (field, name, text)
                parts[key] = Setting.model_validate({field: value if name is None else {name: text}})
        return parts

    def excludes(self, other: Setting) -> bool:
        """Whether both set the same thing to different values."""
        values = {key[:-1]: key for key in self.parts}
        return any(values.get(key[:-1], key) != key for key in other.parts)

    @property
    def ompio(self) -> dict[str, str]:
        """Variables for Open MPI's own MPI-IO that correspond to ROMIO's hints, if there are any."""
        return {OMPIO[name]: value for name, value in self.hints.items() if name in OMPIO}

    @property
    def label(self) -> str:
        """The setting as a short text; `as it is` if it changes nothing."""
        pairs = [*self.hints.items(), *self.environment.items()]
        layout = self.layout or ""
        if layout.startswith("setfattr "):
            # CephFS takes bytes, which are long.
            values = layout.rpartition(" -v ")[2].strip("'")
            layout = re.sub(r"(?<==)\d+", lambda digits: lfs_size(int(digits[0])), values)
        parts = [*filter(None, [layout]), *(f"{name} {value}" for name, value in pairs)]
        parts += [f"{folder} read from {near}" for folder, near in self.stage_in.items()]
        parts += [f"output by way of {self.stage_out}"] if self.stage_out else []
        parts += [f"{self.mapping} mapping"] if self.mapping else []
        return ", ".join(parts) or "as it is"


AS_IT_IS = Setting()
"""The setting that changes nothing."""


class Candidate(Model):
    """A setting worth trying, from one recommendation."""

    rule: str
    name: str
    reason: str
    expected: float | None = Field(description="expected speedup of the recommendation; null if unknown")
    most_saved_s: float | None = Field(
        default=None,
        description="most seconds of the run that the recommendation expects to save; null if it has no number",
    )
    expected_run: float | None = Field(
        default=None, description="expected speedup of the whole run, comparable to `result.speedup`; null if unknown"
    )
    setting: Setting


class NotTried(Model):
    """A recommendation that cannot be tried from outside."""

    rule: str
    why: str


class RunIO(Model):
    """The I/O time of a run. Parts by the timer are of the slowest process."""

    source: Literal["darshan", "timer", "recorder", "strace", "dftracer"] = Field(
        description="tool that measured it; timer: a library of `vani tune`, preloaded into the processes"
    )
    read_s: float | None = Field(description="seconds during which any process reads")
    write_s: float | None = Field(
        description="seconds during which any process writes plus those during which any flushes"
    )
    metadata_s: float | None = Field(description="seconds during which any process is in a metadata operation")
    most_s: float | None = Field(
        description="maximum saving of the run in seconds if I/O took no time; null if some calls were not seen"
    )


class TunedRun(Model):
    """One run of the program."""

    number: int
    candidates: list[int] = Field(
        description="indices of the candidates that were set; empty for a run without changes"
    )
    folder: str = Field(description="output folder of the run")
    outcome: Literal[
        "running", "ended", "failed", "not_verified", "not_applied", "too_slow", "interrupted"
    ] = "running"
    seconds: float | None = Field(
        default=None,
        description="duration of the command including staging by wall clock, or the seconds printed by the `time` "
        "command",
    )
    io_s: float | None = Field(
        default=None,
        description="I/O time: the longer of the time in which any process is in a file-system call and the time of "
        "the slowest process in I/O calls, including library calls; a lower bound if the source gives no more; null "
        "for the reason in `io_why`",
    )
    io: RunIO | None = Field(default=None, description="parts of the I/O time; null if `io_s` is null")
    io_why: str = Field(default="", description="reason why `io_s` is unknown; otherwise empty")
    status: int | None = Field(default=None, description="exit status; 128 and above if a signal ended the run")
    hints: dict[str, str] = Field(default={}, description="hints that were set and that MPI reported as used")
    remark: str = ""


class Result(Model):
    """The outcome of a session."""

    verdict: Literal["proven", "not_proven", "nothing_helps", "nothing_to_gain", "unfinished"]
    why: str
    candidates: list[int] = Field(description="candidates of the best setting; empty if none was faster than no change")
    judged_by: Literal["io_s", "seconds"] = Field(
        default="seconds", description="time that decided: `io_s` where all runs have it from one source"
    )
    speedup: float | None = Field(
        default=None, description="time of the run without the best setting / with it, from the model of all runs"
    )
    low: float | None = Field(default=None, description="lower end of the interval of `speedup`")
    high: float | None = Field(default=None, description="upper end of the interval of `speedup`")
    confidence: float | None = Field(default=None, description="confidence level of the interval, 0..1")
    noise: float | None = Field(
        default=None,
        description="relative deviation of equal runs, of the time that decided, from the model; null if unknown",
    )
    as_is_runs: int = Field(default=0, description="runs without any of `candidates`")
    best_runs: int = Field(default=0, description="runs with all of them")
    io_speedup: float | None = Field(
        default=None, description="the same ratio of `io_s`; null unless all runs have it from one source"
    )
    io_low: float | None = Field(default=None, description="lower end of the interval of `io_speedup`")
    io_high: float | None = Field(default=None, description="upper end of the interval of `io_speedup`")


class TunedSetting(Model):
    """A proven setting, with the lines that apply it."""

    rule: str
    name: str
    reason: str
    apply: list[str]


class Jobs(Model):
    """The batch jobs that run a session."""

    scheduler: Literal["slurm", "pbs", "lsf", "flux"]
    words: list[str] = Field(
        description="command that submits the script, as words; the script is its last word or (LSF) its input"
    )
    runs_per_job: int | None = Field(
        default=None,
        description="number of runs per job, each of which submits the next job; null runs as many as the job's time "
        "allows",
    )


class Tuned(Document):
    """A session of `vani tune`: also its state while it runs."""

    schema_: Literal["vani.tuned/1"] = Field(alias="schema", default="vani.tuned/1")
    version: str = Field(description="version of Vani")
    begun: str = Field(description="start of the session, ISO 8601 in UTC")
    ended: str | None = Field(
        default=None, description="time of the result, ISO 8601 in UTC; null if the session continues"
    )
    host: str
    application: str | None = Field(
        default=None, description="names of the profile's apps, joined by `+` as in a history; null if unknown"
    )
    machine: str | None = Field(
        default=None,
        description="name of the system description; null if there is none or its figures are typical values",
    )
    processes: int | None = Field(
        default=None, ge=1, lt=1 << 63, description="number of processes of the run in the profile; null if unknown"
    )
    command: list[str] = Field(description="command of a run, as words; `{data}` is its output folder")
    data: str = Field(description="output folder of the session")
    fresh: Literal["subfolder", "emptied", "sibling"] = Field(
        description="output folder of each run: a new folder below `data`; `data` itself, which is emptied after the "
        "run; or a copy of `data` next to it, in which the run takes the place of `data`"
    )
    keep: bool = Field(default=False, description="true if new folders stay after their run")
    run_bytes: int | None = Field(
        default=None, description="bytes in the folder of the first run at its end; null before it"
    )
    prepare: str | None = Field(default=None, description="command that runs before each run")
    verify: str | None = Field(
        default=None, description="command that runs after each run and fails if the results are wrong"
    )
    time: str | None = Field(
        default=None, description="command that runs after each run and prints its seconds; null to use wall-clock time"
    )
    most_runs: int | None = Field(default=None, description="budget in number of runs")
    earlier_ends: list[int] = Field(
        default=[], description="numbers of runs after which the session had ended before `--more` extended it"
    )
    most_seconds: float | None = Field(default=None, description="budget in seconds of runs")
    most_node_hours: float | None = Field(default=None, description="budget in node-hours of runs")
    nodes: int | None = Field(
        default=None,
        ge=1,
        lt=1 << 63,
        description="number of nodes of a run, from the job, else from the profile; null if unknown",
    )
    io_time: Literal["auto", "recorder", "dftracer", "strace", "off"] = Field(
        default="auto",
        description="method of measuring the I/O time of runs; auto: Darshan's log, or else a preloaded timer",
    )
    jobs: Jobs | None = Field(
        default=None, description="batch jobs of the session; null if it runs where it was started"
    )
    candidates: list[Candidate]
    not_tried: list[NotTried] = Field(default=[])
    runs: list[TunedRun] = Field(default=[])
    result: Result | None = None
    settings: list[TunedSetting] = Field(default=[], description="settings in tuned.sh; empty if nothing is proven")

    @model_validator(mode="after")
    def _refuse_other_candidates(self) -> Self:
        named = [run.candidates for run in self.runs]
        named += [] if self.result is None else [self.result.candidates]
        if any(not 0 <= index < len(self.candidates) for indices in named for index in indices):
            raise ValueError(f"there are only {len(self.candidates)} candidates, from 0 on")
        if self.result is not None and self.result.verdict == "proven" and not self.result.candidates:
            raise ValueError("a proven result names its candidates")
        return self

    def setting(self, candidates: list[int]) -> Setting:
        """The combined setting of several candidates; later candidates take precedence."""
        setting = AS_IT_IS
        for index in candidates:
            setting = setting.with_(self.candidates[index].setting)
        return setting

    @property
    def first(self) -> TunedRun | None:
        """The first completed run without changed settings."""
        return next((run for run in self.runs if run.outcome == "ended" and not run.candidates), None)

    @property
    def most_gain(self) -> float | None:
        """Share of the first run that would be saved if I/O took no time, 0..1; None where that is not known.

        That is also so for seconds that a command of the user prints, which may be those of a part of the run.
        """
        run = self.first
        if self.time is not None or run is None or not run.seconds or run.io is None or run.io.most_s is None:
            return None
        return min(1.0, run.io.most_s / run.seconds)
