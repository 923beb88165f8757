"""advice.yaml: recommended settings, each with its evidence, source and expected gain."""

import html
from typing import Annotated, ClassVar, Literal

from pydantic import Field

import vani
from vani.errors import one_line
from vani.schema.benchmark import Benchmark
from vani.schema.document import Document
from vani.schema.model import Model, SparseModel
from vani.schema.profile.workload import Verdict

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

    attribute: str = Field(description="path in the profile, or `system.` followed by a path in the system description")
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
        description="lower and upper bound of `before`, if the profile has bounds for such times; with `low` and "
        "`high` they give the range of the saving; left out if it has none",
    )


class Direction(Model):
    """The expected effect if its size is unknown."""

    direction: Literal["faster", "perhaps faster"] = Field(
        default="faster", description="expected effect; `perhaps faster` means that the gain may be zero"
    )
    why_no_number: str = Field(description="reason why there is no number, or what to supply to get one")


class Measured(Model):
    """The outcome of `vani tune` for this setting, application and machine at a comparable scale, of the whole run."""

    verdict: Literal["proven", "not_proven", "no_gain", "failed"] = Field(
        description="result of the measurement. not_proven: it looked faster, but this may be chance; failed: the "
        "program failed with the setting"
    )
    speedup: float | None = Field(
        description="run time without the setting / run time with it; null if the program failed"
    )
    low: float | None = Field(description="lower end of the interval of `speedup`; null if there were too few runs")
    high: float | None = Field(description="upper end of the interval of `speedup`; null if there were too few runs")
    runs: int = Field(description="number of runs with this setting")
    date: str = Field(description="day of the measurement, in UTC")
    machine: str
    processes: int | None
    nodes: int | None
    this_processes: int | None = Field(description="number of processes of the run that the advice is for")
    this_nodes: int | None = Field(description="number of nodes of the run that the advice is for")
    together_with: str | None = Field(
        default=None, description="other settings that were set in the same runs; null if there were none"
    )

    @property
    def helps(self) -> bool:
        """False if measurements showed that the setting is not worth following."""
        return self.verdict in ("proven", "not_proven")


class TunableSetting(Model):
    """A setting that can be tried without changing the program."""

    kind: Literal["layout", "hints", "environment", "stage_in", "stage_out", "mapping"] = Field(
        description="kind of setting: layout of new files in a folder, MPI-IO hints, environment variables, a folder "
        "copied (stage_in) or written (stage_out) close to the nodes, or the launcher's mapping of processes to nodes"
    )
    folder: str | None = Field(
        default=None, description="folder to which the layout applies or that is staged; null for other kinds"
    )
    values: list[dict[str, str]] = Field(
        description="values to try, most promising first. layout: `options` of `lfs setstripe`, or a `command` to "
        "which the folder is appended; staging: the folder `near` the nodes; mapping: its `order`, block or cyclic; "
        "other kinds: values by name"
    )


class Recommendation(SparseModel):
    """A recommendation of a rule for one target."""

    optional_keys: ClassVar[tuple[str, ...]] = ("patterns", "settings", "measured")

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
        description="expected effect as a number with a range that covers four of five runs, or as a direction if "
        "there is no number; null if it is unknown whether the run gets faster, or if `measured` gives the result"
    )
    measured: Measured | None = Field(
        default=None,
        description="measured effect, which replaces `expected`; left out without a history or a measurement",
    )
    apply: list[str]
    settings: list[TunableSetting] = Field(
        default=[], description="settings of this recommendation that `vani tune` can try; left out if there are none"
    )
    source: list[str]
    patterns: list[str] = Field(
        default=[], description="patterns of the diagnosis that the rule addresses; left out if there are none"
    )

    @property
    def gain(self) -> Expected | None:
        """The expected effect if it is a number."""
        return self.expected if isinstance(self.expected, Expected) else None

    @property
    def direction(self) -> Direction | None:
        """The expected effect if it is not a number."""
        return self.expected if isinstance(self.expected, Direction) else None


class NoRecommendation(Model):
    """A rule that was evaluated and has nothing to recommend."""

    rule: str
    why: str


class Observation(Model):
    """Something that the program does, whether or not it costs time; `docs/diagnosis.md` defines each pattern."""

    pattern: str = Field(description="name of the pattern, one of those in docs/diagnosis.md")
    target: Target = Field(
        description="costliest place of the pattern: a file, a name pattern (`dataset`), an app, or the job"
    )
    evidence: list[Evidence] = Field(description="values in the profile that show the pattern")
    share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="share of the I/O time of all files, calls or processes that show the pattern; null if unknown"
    )
    time_s: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="this share in seconds, summed over processes; null if unknown"
    )
    rules: list[str] = Field(description="rules that address the pattern, whether or not they recommend anything here")


class Remainder(Model):
    """The largest part of the time in I/O calls, given if no recommendation acts on half of that time."""

    kind: Literal["exchange", "opening", "independent", "data", "metadata", "unknown", "file_system"] = Field(
        description="main component of the time. exchange: exchange and waiting in collective calls that move data; "
        "opening: waiting in other calls that all processes make together; independent: packing and locks in "
        "independent calls; data: compression, conversion or copying inside HDF5 or netCDF; metadata: metadata "
        "handling of the library itself; unknown: unidentified time inside libraries; file_system: file-system calls "
        "that no recommendation addresses"
    )
    seconds: Annotated[float, Field(ge=0)] = Field(
        description="time in this component, in the process with most time in I/O calls"
    )
    share: Annotated[float, Field(ge=0, le=1)] = Field(description="`seconds` / time of that process in I/O calls")
    sentence: str = Field(description="explanation of this time, and whether a storage setting reduces it")


class JudgedFiles(Model):
    """The judged part of a long list of files: those with the most I/O time (`--files`)."""

    listed: Annotated[int, Field(ge=0)] = Field(description="number of files that the profile lists")
    judged: Annotated[int, Field(ge=0)] = Field(description="number of listed files that the rules judged")
    io_time_share: Annotated[float, Field(ge=0, le=1)] = Field(
        description="share of the I/O time of all listed files that the judged files take"
    )


class ProfileRef(Model):
    """The profile that was judged."""

    path: str | None
    sha256: str
    files: JudgedFiles | None = Field(
        default=None, description="extent of the judgement; null if all listed files were judged"
    )


class SystemRef(Model):
    """The system description used for judging."""

    name: str | None
    sha256: str


class NextRunBehaviour(Model):
    """A behaviour that the next run may have."""

    behaviour: Annotated[int, Field(ge=0)] = Field(description="number of the behaviour within the category")
    probability: Annotated[float, Field(ge=0, le=1)]
    run: str | None = Field(description="judged run with that behaviour; null if its profile and files no longer exist")


class NextRun(Model):
    """A run that has not happened yet, which the advice is for; gains and confidences are weighed by probability."""

    application: str
    user: str | None
    processes: Annotated[int, Field(ge=0)] | None
    behaviours: list[NextRunBehaviour] = Field(description="expected behaviours, most probable first")
    default: str | None = Field(description="reason why no setting should be changed; null if enough is known")


class Advice(SparseModel, Document):
    """The advice on a profile. Every evaluated rule is in one of the two lists."""

    optional_keys: ClassVar[tuple[str, ...]] = ("next_run", "notes", "remainder", "benchmark")

    schema_: Literal["vani.advice/3"] = Field(alias="schema", default="vani.advice/3")
    profile: ProfileRef
    system: SystemRef
    damage: str | None = Field(
        default=None,
        description="what the traces of the profile lost, in one sentence; lowers confidences; null if the traces are "
        "complete",
    )
    verdict: Verdict | None = Field(
        default=None,
        description="verdict of the profile on whether storage matters, with the first recommendation, if any, as its "
        "remedy; null in documents of an older Vani",
    )
    remainder: Remainder | None = Field(
        default=None,
        description="largest component of the time in I/O calls, if I/O matters and no recommendation addresses half "
        "of that time; otherwise left out",
    )
    diagnosis: list[Observation] | None = Field(
        default=None,
        description="behaviour of the program, costly or not, ordered by share of the I/O time; null in documents of "
        "an older Vani",
    )
    notes: list[str] | None = Field(
        default=None,
        description="one sentence for each file system whose mounts differ between trace and system description, or "
        "for which the advice is generic; left out if there are none",
    )
    next_run: NextRun | None = Field(
        default=None, description="expected behaviour of the next run; left out if the advice is for an existing run"
    )
    benchmark: Benchmark | None = Field(
        default=None,
        description="result of IO500, IOR or mdtest that was judged instead of a profile, or that the traced run "
        "printed; left out if there is none",
    )
    recommendations: list[Recommendation]
    no_recommendation: list[NoRecommendation]

    def summary(self) -> str:
        """The first screen, as `vani advise` prints it: whether I/O matters, what to do, which line to paste."""
        return str(vani.advice_screen(self))

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
