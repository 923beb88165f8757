"""The verdict of `vani check`, and the baseline (.vani/baseline.yaml) that it compares with.

The verdict has every judgement of a policy about a profile. Renderers (text, JSON, SARIF, JUnit, GitHub, GitLab) see
only this document. The baseline has the figures of earlier runs, small enough for git: one tree for all runs, with a
single value where they agree, otherwise a list with a value per run. It contains no dates and no paths except those of
files, so that the same runs give the same bytes.
"""

from typing import Any, Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.model import Model, schema_field
from vani.schema.profile.workload import Verdict as StorageVerdict

Level = Literal["error", "warning", "note"]
"""How bad a failure is."""
Number = int | float | None
"""A figure; null where it is not known."""


class Source(Model):
    """An input file of the verdict."""

    path: str
    sha256: str


class PolicyPlace(Model):
    """Place of a check in the policy file."""

    path: str
    line: int = Field(description="line number, from 1")


class Excepted(Model):
    """An exception of the policy that covers a judgement."""

    until: str = Field(description="last day on which the exception applies, as an ISO date")
    reason: str


class Effect(Model):
    """How a time of the checked runs compares with a baseline's runs: the ratio of geometric means."""

    ratio: float = Field(description="time of the checked runs divided by that of the baseline")
    low: float = Field(description="lower end of the interval that contains the ratio with a probability of 95 %")
    high: float = Field(description="upper end of that interval")
    p: float = Field(
        description="probability that some time of an unchanged program differs as much, among all times of the check"
    )
    is_significant: bool = Field(description="whether that is rarer than the policy's `false_alarms`")
    unseen: float = Field(description="factor below which a change for the worse passes, with this number of runs")


class Times(Model):
    """The comparison of times with a baseline's runs as a whole."""

    compared: int = Field(description="number of times")
    runs: int = Field(description="number of checked runs")
    baseline_runs: int
    false_alarms: float = Field(
        description="highest probability that a check of an unchanged program fails because of its times"
    )
    least_unseen: float = Field(description="the smallest factor below which a slowdown of some time passes")
    most_unseen: float = Field(description="the largest of these factors")
    sentence: str = Field(description="all of this in one sentence")


class Judgement(Model):
    """One check of the policy against one attribute, file, app, phase or piece of advice."""

    id: str = Field(description="stable ID, unique in the document: name of the check and what it compared with")
    check: str = Field(description="name of the check in the policy")
    kind: Literal["budget", "change", "rule", "missing", "exception", "tuned"] = Field(
        description="kind of check. missing: a value needed for the judgement is unknown, or a trace is damaged; "
        "exception: a policy exception has expired or covers nothing; tuned: a setting proved by `vani tune`"
    )
    level: Level = Field(description="severity of a failure of the check")
    status: Literal["pass", "fail", "excepted", "unknown"] = Field(
        description="result of the check; unknown: the attribute is null, or the check does not judge it"
    )
    attribute: str | None = Field(default=None, description="path in the profile; null if the check has none")
    target: str | None = Field(default=None, description="file or app that it is about; null for the whole run")
    value: Number | str
    limit: str | None = Field(default=None, description="allowed value as written in the policy, such as `<= 1e5`")
    baseline: Number = Field(default=None, description="value in the baseline; null if there is none")
    change: float | None = Field(
        default=None, description="(value - baseline) / baseline; null if there is no baseline value"
    )
    effect: Effect | None = Field(
        default=None, description="comparison of a time by its logarithms; null for exact values, or without two runs"
    )
    message: str = Field(description="value and limit in one line")
    reason: str | None = Field(default=None, description="reason given in the policy")
    todo: str | None = Field(default=None, description="recommended action in one line")
    excepted: Excepted | None = None
    place: PolicyPlace | None = None


class Cause(Model):
    """A change of the run from which several failures follow."""

    kind: Literal[
        "independent", "smaller_accesses", "more_data", "order", "metadata", "flushing", "new_files", "processes",
        "slower",
    ]  # fmt: skip
    message: str = Field(description="change in one line, with its file and phase")
    todo: str = Field(description="recommended action in one line")
    rules: list[str] = Field(default_factory=list, description="IDs of rules with details (`vani explain ID`)")
    files: list[str] = Field(default_factory=list, description="paths of the files with this change, if any")
    io_time_s: float | None = Field(default=None, description="I/O time of the changed parts; null if unknown")
    judgements: list[str] = Field(default_factory=list, description="IDs of the failures that this cause explains")


class CheckCounts(Model):
    """Number of judgements of each kind."""

    error: int
    warning: int
    note: int
    passed: int
    excepted: int
    unknown: int


class Check(Model):
    """The whole verdict; judgements are ordered worst first, then by id."""

    schema_: Literal["vani.check/1"] = Field(alias="schema")
    version: str
    profile: Source
    runs: list[Source] = Field(
        default_factory=list, description="checked runs, if there are several; the first is `profile`"
    )
    damage: str | None = Field(
        default=None,
        description="what the traces of the profile lost, in one sentence (the figures may differ from the whole "
        "run); null if the traces are complete",
    )
    policy: Source | None
    baselines: list[Source]
    tuned: Source | None = Field(
        default=None, description="path of the tuned.yaml that the run was compared with; null if there is none"
    )
    fail_on: Level
    verdict: Literal["pass", "pass with warnings", "fail"] = Field(
        description="overall result; pass with warnings: a check of at least warning level failed, but below the "
        "`fail_on` level"
    )
    counts: CheckCounts
    times: Times | None = Field(
        default=None, description="how times were compared; null if none was, as with a single run of each side"
    )
    judgements: list[Judgement]
    causes: list[Cause] = Field(
        default_factory=list, description="causes of failures, costliest first; at most one per failure"
    )
    storage: StorageVerdict | None = Field(
        default=None, description="verdict of the profile on whether storage matters to the run"
    )
    io_share: str | None = Field(
        default=None,
        description="statement that I/O takes too little of the run for any change to matter; null if it does not",
    )


class BaselineRun(Model):
    """One run in the baseline."""

    version: str = Field(description="version of Vani that wrote the profile")
    sha256: str = Field(description="SHA-256 of the profile")


class Baseline(Document):
    """Figures of several runs."""

    schema_: Literal["vani.baseline/1"] = schema_field("vani.baseline/1")
    runs: list[BaselineRun] = Field(
        min_length=1, max_length=100, description="runs of the baseline, in the order in which they were added"
    )
    figures: dict[str, Any] = Field(
        description="numbers and names from the profiles, without histograms and provenance, for the most important "
        "files only; a list has one value per run, and `in_runs` lists the indices of the runs that contain the entity"
    )
