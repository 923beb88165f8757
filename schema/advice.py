"""advice.yaml: recommended settings, each with its evidence, source and expected gain."""

from __future__ import annotations

import html
from typing import Annotated, ClassVar, Literal

from pydantic import Field

import vani
from vani.errors import one_line
from vani.schema.benchmark import Benchmark
from vani.schema.document import Document
from vani.schema.model import Model, SparseModel
from vani.schema.profile.verdict import Verdict

__all__ = [
    "Advice",
    "Direction",
    "Evidence",
    "Expected",
    "JudgedFiles",
    "Knob",
    "Measured",
    "NextRun",
    "NextRunBehaviour",
    "NoRecommendation",
    "Observation",
    "ProfileRef",
    "Recommendation",
    "Remainder",
    "Severity",
    "SystemRef",
    "Target",
]

Scalar = str | int | float | bool | None
Setting = Scalar | list[Scalar] | dict[str, Scalar] | list[dict[str, Scalar]]
Severity = Literal["high", "medium", "low", "info"]
"""By the share of the run that a recommendation saves alone; low at most where it saves less than a second."""


class Target(Model):
    """The target of a setting."""

    kind: Literal["file", "directory", "dataset", "app", "job"]
    path: str | None = None
    app: str | None = None


class Evidence(Model):
    """A number from the profile or the system description that supports the recommendation."""

    attribute: str = Field(
        description="path in the profile, or `system.` and a path in the system description"
    )
    value: Setting


class Expected(SparseModel):
    """The expected effect of a recommendation, in seconds of the run.

    A part of the run takes no longer than the slowest process's I/O time. Recommendations are ordered by what each
    saves alone. The expected effect of one is its saving on the time that those before it leave, and all of them
    together save no more than MAT001 names.
    """

    optional_keys: ClassVar[tuple[str, ...]] = ("before_bounds",)

    metric: str
    before: float | None
    after: float | None
    speedup: float | None
    low: float | None
    high: float | None
    method: str
    before_bounds: tuple[float, float] | None = Field(
        default=None,
        description="the least and the most that `before` can be, where the profile has bounds of such times: with "
        "`low` and `high` they are the range of the saving; absent where it has none",
    )


class Direction(Model):
    """The expected effect if its size is unknown."""

    direction: Literal["faster", "perhaps faster"] = Field(
        default="faster", description="perhaps faster: the gain may be zero"
    )
    why_no_number: str = Field(description="the reason, or what to supply for a number")


class Measured(Model):
    """The outcome of `vani tune` for this setting, application and machine at a comparable scale, of the whole run."""

    verdict: Literal["proven", "not_proven", "no_gain", "failed"] = Field(
        description="not_proven: it looked faster, and may be so by chance; failed: the program failed with it"
    )
    speedup: float | None = Field(description="speedup over runs without it; null where the program failed")
    low: float | None = Field(description="lower end of its interval; null: too few runs")
    high: float | None = Field(description="upper end")
    runs: int = Field(description="with this setting")
    date: str = Field(description="the day, in UTC")
    machine: str
    processes: int | None
    nodes: int | None
    this_processes: int | None = Field(description="of the run that the advice is for")
    this_nodes: int | None = Field(description="of the run that the advice is for")
    together_with: str | None = Field(
        default=None, description="other settings that were set in these runs; null: none"
    )

    @property
    def helps(self) -> bool:
        """False if measurements showed that the setting is not worth following."""
        return self.verdict in ("proven", "not_proven")


class Knob(Model):
    """A setting that can be tried without changing the program."""

    kind: Literal["layout", "hints", "environment", "stage_in", "stage_out", "mapping"] = Field(
        description="the layout of new files in a folder, hints of MPI-IO, variables, a folder that is read or written "
        "near the nodes during the run, or how the launcher places processes on nodes"
    )
    folder: str | None = Field(default=None, description="of a layout, or the one that is staged; else null")
    values: list[dict[str, str]] = Field(
        description="worth trying, best first: of a layout the `options` of `lfs setstripe`, or the `command` that "
        "takes the folder last; of staging the folder `near` the nodes; of a mapping its `order`, block or cyclic; "
        "else values by name"
    )


class Recommendation(SparseModel):
    """A recommendation of a rule for one target."""

    optional_keys: ClassVar[tuple[str, ...]] = ("patterns", "knobs", "measured")

    def keys_left_out(self) -> tuple[str, ...]:
        """The optional keys that are empty."""
        return tuple(name for name in self.optional_keys if not getattr(self, name))

    rule: str
    name: str
    severity: Severity
    confidence: Annotated[float, Field(ge=0, le=1)]
    target: Target
    current: dict[str, Setting]
    recommended: dict[str, Setting]
    evidence: list[Evidence]
    reason: str
    expected: Expected | Direction | None = Field(
        description="a number with its range, which four of five runs keep within; a direction where there is none; "
        "null where it is unknown whether it gets faster, and where `measured` gives the result"
    )
    measured: Measured | None = Field(
        default=None, description="instead of `expected`; absent without a history or without a measurement"
    )
    apply: list[str]
    knobs: list[Knob] = Field(
        default=[], description="what `vani tune` can try of it; absent where there is nothing to try"
    )
    source: list[str]
    patterns: list[str] = Field(
        default=[],
        description="patterns of the diagnosis that the rule acts on; absent where there are none",
    )

    @property
    def gain(self) -> Expected | None:
        """The expected effect if it is a number."""
        return self.expected if isinstance(self.expected, Expected) else None

    @property
    def direction(self) -> Direction | None:
        """The expected effect if it is not a number."""
        return self.expected if isinstance(self.expected, Direction) else None


class NoRecommendation(SparseModel):
    """A rule that was evaluated and has nothing to recommend."""

    optional_keys: ClassVar[tuple[str, ...]] = ("knobs",)

    rule: str
    why: str
    knobs: list[Knob] = Field(
        default=[],
        description="what `vani tune` can try anyway where I/O matters; whether it helps is unknown; absent "
        "where there "
        "is nothing to try",
    )


class Observation(Model):
    """Something that the program does, whether or not it costs time; `docs/diagnosis.md` defines each pattern."""

    pattern: str = Field(description="its name, from the closed list of docs/diagnosis.md")
    target: Target = Field(
        description="its costliest place: a file, a name pattern (`dataset`), an app, or the job"
    )
    evidence: list[Evidence] = Field(description="numbers of the profile that show it")
    share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="share of the I/O time of all files, calls or processes with it; null: not known"
    )
    rules: list[str] = Field(description="rules that act on it, whether or not they recommend something here")


class Remainder(Model):
    """The largest part of the time in I/O calls, given if no recommendation acts on half of that time."""

    kind: Literal["exchange", "opening", "independent", "data", "metadata", "unknown", "file_system"] = Field(
        description="its main part. exchange: exchange and waiting in collective calls that move data; "
        "opening: waiting in other calls that all processes make together; independent: packing and locks in "
        "independent calls; data: compression, conversion or copying inside HDF5 or netCDF; metadata: that of the "
        "library itself; unknown: inside libraries; file_system: file-system calls that no recommendation is about"
    )
    seconds: Annotated[float, Field(ge=0)] = Field(description="of the process with most time in I/O calls")
    share: Annotated[float, Field(ge=0, le=1)] = Field(description="of its time in I/O calls")
    sentence: str = Field(description="its nature, and whether a setting of storage reduces it")


class JudgedFiles(Model):
    """The judged part of a long list of files: those with the most I/O time (`--files`)."""

    listed: Annotated[int, Field(ge=0)] = Field(description="files that the profile lists")
    judged: Annotated[int, Field(ge=0)] = Field(description="of these, the files that the rules judged")
    io_time_share: Annotated[float, Field(ge=0, le=1)] = Field(
        description="share of the listed files' I/O time in these files"
    )


class ProfileRef(Model):
    """The profile that was judged."""

    path: str | None
    sha256: str
    files: JudgedFiles | None = Field(default=None, description="null where all listed files were judged")


class SystemRef(Model):
    """The system description used for judging."""

    name: str | None
    sha256: str


class NextRunBehaviour(Model):
    """A behaviour that the next run may have."""

    behaviour: Annotated[int, Field(ge=0)] = Field(description="its number within the category")
    probability: Annotated[float, Field(ge=0, le=1)]
    run: str | None = Field(
        description="the run of that behaviour that was judged; null: its profile and its files are gone"
    )


class NextRun(Model):
    """A run that has not happened yet, which the advice is for; gains and confidences are weighed by probability."""

    application: str
    user: str | None
    processes: Annotated[int, Field(ge=0)] | None
    behaviours: list[NextRunBehaviour] = Field(description="the most probable first")
    default: str | None = Field(description="why nothing should be changed; null: enough is known")


class Advice(SparseModel, Document):
    """The advice on a profile. Every evaluated rule is in one of the two lists."""

    optional_keys: ClassVar[tuple[str, ...]] = ("next_run", "notes", "remainder", "benchmark")

    schema_: Literal["vani.advice/2"] = Field(alias="schema", default="vani.advice/2")
    profile: ProfileRef
    system: SystemRef
    damage: str | None = Field(
        default=None,
        description="what the profile's traces lost, as a sentence; it lowers confidences; null where they "
        "are complete",
    )
    verdict: Verdict | None = Field(
        default=None,
        description="whether storage matters, as the profile has it; its remedy is the first recommendation where "
        "there is one; null in a document of an older Vani",
    )
    remainder: Remainder | None = Field(
        default=None,
        description="what takes most of the time in I/O calls, where I/O matters and no recommendation acts on half of "
        "it; absent elsewhere",
    )
    diagnosis: list[Observation] | None = Field(
        default=None,
        description="what the program does, whether or not it costs time, by share of the I/O time; null in a document "
        "of an older Vani",
    )
    notes: list[str] | None = Field(
        default=None,
        description="file systems on which trace and machine description differ, or for "
        "which advice is generic, one sentence each; absent if there are none",
    )
    next_run: NextRun | None = Field(
        default=None, description="absent where the advice is for an existing run"
    )
    benchmark: Benchmark | None = Field(
        default=None,
        description="a result of IO500, IOR or mdtest: the one that was judged in place of a profile, or what the "
        "traced run printed; absent elsewhere",
    )
    recommendations: list[Recommendation]
    no_recommendation: list[NoRecommendation]

    def summary(self) -> str:
        """The first screen, as `vani advise` prints it: whether I/O matters, what to do, which line to paste."""
        return str(vani.advice_screen_of(self))

    def __repr__(self) -> str:
        """One line, however much is recommended."""
        rules = list(dict.fromkeys(recommendation.rule for recommendation in self.recommendations))
        first = ", ".join(rules[:3]) + (f" and {len(rules) - 3} more" if len(rules) > 3 else "")
        rule_count = len({row.rule for row in self.recommendations} | {row.rule for row in self.no_recommendation})
        machine = one_line(self.system.name or "an unnamed machine")
        return f"<Advice for {machine}: {first or 'nothing to change'}, of {rule_count} rules>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The first screen, as notebooks show it."""
        first, *rest = html.escape(self.summary()).split("\n")
        return f"<pre><b>{first}</b>\n" + "\n".join(rest) + "</pre>"

    def keys_left_out(self) -> tuple[str, ...]:
        """The optional keys without a value, each independent of the others."""
        return tuple(name for name in self.optional_keys if not getattr(self, name))
