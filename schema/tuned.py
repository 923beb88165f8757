"""tuned.yaml: settings that `vani tune` tried by running a program, what was measured, and what was kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, Self

from pydantic import Field, model_validator

from vani.schema.document import Document
from vani.schema.model import Model

if TYPE_CHECKING:
    from vani.schema.advice import Knob

__all__ = [
    "AS_IT_IS", "LEAST_GAIN",
    "Candidate", "Jobs", "NotTried", "Result", "RunIO", "Setting", "Tuned", "TunedRun", "TunedSetting",
]  # fmt: skip


LEAST_GAIN: Final = 0.02
"""Share of a run; a setting that saves less is not worth the runs that would prove it (ours)."""


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
        description="options of `lfs setstripe` for the folder of the output, or the whole command of another file "
        "system, which takes the folder last; null: as it is",
    )
    hints: dict[str, str] = Field(default={}, description="of MPI-IO, by name")
    environment: dict[str, str] = Field(default={}, description="variables, by name")
    stage_in: dict[str, str] = Field(
        default={}, description="folders that are copied before the program starts, each to a new one below this folder"
    )
    stage_out: str | None = Field(
        default=None,
        description="the output is written to a new folder below this one, and copied when the program ends; null: not",
    )
    mapping: Literal["block", "cyclic"] | None = Field(
        default=None,
        description="placement of processes by the launcher: fill one node after another, or all in "
        "turn; null: unchanged",
    )

    @staticmethod
    def of_knob(knob: Knob, value: Mapping[str, str]) -> Setting:
        """The setting that gives a knob one of its values."""
        if knob.kind == "layout":
            return Setting(layout=value.get("command", value.get("options")))
        if knob.kind == "hints":
            return Setting(hints=dict(value))
        if knob.kind == "environment":
            return Setting(environment=dict(value))
        if knob.kind == "stage_in":
            return Setting(stage_in={knob.folder or "": value["near"]})
        return Setting.model_validate({knob.kind: value["near" if knob.kind == "stage_out" else "order"]})

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

    @property
    def ompio(self) -> dict[str, str]:
        """Variables for Open MPI's own MPI-IO that correspond to ROMIO's hints, if there are any."""
        return {OMPIO[name]: value for name, value in self.hints.items() if name in OMPIO}

    @property
    def label(self) -> str:
        """The setting as a short text; `as it is` if it changes nothing."""
        pairs = [*self.hints.items(), *self.environment.items()]
        parts = [*filter(None, [self.layout]), *(f"{name} {value}" for name, value in pairs)]
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
    expected: float | None = Field(description="the recommendation's expected speedup; null: unknown")
    saves_s: tuple[float, float, float] | None = Field(
        default=None,
        description="seconds of the run that it saves by the recommendation: the least, the median and the most of its "
        "80 % range; null where it gives no number",
    )
    is_faster: bool = Field(
        default=False, description="the recommendation expects a faster run, with or without a number"
    )
    expected_run: float | None = Field(
        default=None, description="`expected` of the whole run, as `result.speedup` is; null: unknown"
    )
    setting: Setting


class NotTried(Model):
    """A recommendation that cannot be tried from outside."""

    rule: str
    why: str


class RunIO(Model):
    """The I/O time of a run, from its profile."""

    source: Literal["darshan", "recorder", "strace", "dftracer"] = Field(description="of the profile")
    read_s: float | None = Field(description="time in which any process reads")
    write_s: float | None = Field(description="time in which any process writes, and in which any flushes, added up")
    metadata_s: float | None = Field(description="time in which any process is in a metadata operation")
    most_s: float | None = Field(
        description="what the run can save at most if I/O takes no time; null where calls were not seen"
    )


class TunedRun(Model):
    """One run of the program."""

    number: int
    candidates: list[int] = Field(description="indices of the candidates that were set; empty: no change")
    folder: str = Field(description="of its output")
    outcome: Literal[
        "running", "ended", "failed", "not_verified", "not_applied", "too_slow", "interrupted"
    ] = "running"
    seconds: float | None = Field(
        default=None, description="of the command by the wall clock, with staging, or those that `time` printed"
    )
    io_s: float | None = Field(
        default=None,
        description="time in which any process is in a file-system call, or of the slowest process in I/O "
        "calls, including "
        "library calls, whichever is longer; at least this where the source gives no more; null: see `io_why`",
    )
    io: RunIO | None = Field(default=None, description="its parts; null with `io_s`")
    io_why: str = Field(default="", description="why `io_s` is not known; else empty")
    status: int | None = Field(default=None, description="its exit status; 128 and more: ended by a signal")
    hints: dict[str, str] = Field(default={}, description="those that MPI reported, of those that were set")
    remark: str = ""


class Result(Model):
    """The outcome of a session."""

    verdict: Literal["proven", "not_proven", "nothing_helps", "nothing_to_gain", "unfinished"]
    why: str
    candidates: list[int] = Field(description="of the best setting; empty: none was faster than no change")
    speedup: float | None = Field(default=None, description="geometric mean without changes divided by the best one's")
    low: float | None = Field(default=None, description="lower end of its interval")
    high: float | None = Field(default=None, description="upper end")
    confidence: float | None = Field(default=None, description="of the interval between both ends, 0..1")
    noise: float | None = Field(
        default=None, description="relative deviation of repeated runs; null: none was repeated"
    )
    as_is_runs: int = 0
    best_runs: int = 0
    io_speedup: float | None = Field(
        default=None, description="of `io_s`, by geometric means; null where it is not known of both"
    )


class TunedSetting(Model):
    """A proven setting, with the lines that apply it."""

    rule: str
    name: str
    reason: str
    apply: list[str]


class Jobs(Model):
    """The batch jobs that run a session."""

    scheduler: Literal["slurm", "pbs", "lsf", "flux"]
    words: list[str] = Field(description="the command that submits the script, its last word or (LSF) its input")
    runs_per_job: int | None = Field(
        default=None, description="runs of one job, which submits the next one; null: as many as its time allows"
    )


class Tuned(Document):
    """A session of `vani tune`: also its state while it runs."""

    schema_: Literal["vani.tuned/1"] = Field(alias="schema", default="vani.tuned/1")
    version: str = Field(description="of Vani")
    begun: str = Field(description="ISO 8601 in UTC")
    ended: str | None = Field(
        default=None, description="time of the result, ISO 8601 in UTC; null: the session continues"
    )
    host: str
    application: str | None = Field(
        default=None, description="the profile's apps, joined by `+`, as in a history; null: unknown"
    )
    machine: str | None = Field(
        default=None, description="name of the system description; null: none, or one of typical figures"
    )
    processes: int | None = Field(
        default=None, ge=1, lt=1 << 63, description="of the run in the profile; null: unknown"
    )
    command: list[str] = Field(description="its words; `{data}` is the output folder of a run")
    data: str = Field(description="the folder of the output")
    fresh: Literal["subfolder", "emptied"] = Field(
        description="each run writes into a new folder below `data`, or into `data`, which is emptied after it"
    )
    prepare: str | None = Field(default=None, description="command before each run")
    verify: str | None = Field(
        default=None, description="command after each run, which fails where results are wrong"
    )
    time: str | None = Field(
        default=None, description="command after each run that prints its seconds; null: by the wall clock"
    )
    most_runs: int | None = Field(default=None, description="the budget in runs")
    most_seconds: float | None = Field(default=None, description="the budget in seconds of runs")
    most_node_hours: float | None = Field(default=None, description="the budget in node-hours of runs")
    nodes: int | None = Field(
        default=None,
        ge=1,
        lt=1 << 63,
        description="nodes of a run, from the job, else from the profile; null: not known",
    )
    later_runs: int = Field(
        default=100, description="runs that will use it: a setting is tried if it is expected to save a run in them"
    )
    io_time: Literal["auto", "recorder", "dftracer", "strace", "off"] = Field(
        default="auto", description="how the I/O time of runs is measured; auto: by the log that Darshan leaves"
    )
    jobs: Jobs | None = Field(default=None, description="null: the session runs where it was started")
    candidates: list[Candidate]
    not_tried: list[NotTried] = Field(default=[])
    runs: list[TunedRun] = Field(default=[])
    result: Result | None = None
    settings: list[TunedSetting] = Field(
        default=[], description="settings in tuned.sh; empty where nothing is proven"
    )

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
        """Share of the first run that would be saved if I/O took no time, 0..1; None where that is not known."""
        run = self.first
        if run is None or not run.seconds or run.io is None or run.io.most_s is None:
            return None
        return min(1.0, run.io.most_s / run.seconds)
