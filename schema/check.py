"""The verdict of `vani check`: every judgement of a policy about a profile, as a document.

Renderers (text, JSON, SARIF, JUnit, GitHub, GitLab) see only this document.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.verdict import Verdict as StorageVerdict

__all__ = ["Cause", "Check", "CheckCounts", "Excepted", "Judgement", "Level", "Number", "PolicyPlace", "Source"]

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
    line: int = Field(description="1-based")


class Excepted(Model):
    """An exception of the policy that covers a judgement."""

    until: str = Field(description="ISO date; the last day on which the exception applies")
    reason: str


class Judgement(Model):
    """One check of the policy against one attribute, file, app, phase or piece of advice."""

    id: str = Field(
        description="stable and unique in a document: name of the check and what it compared with"
    )
    check: str = Field(description="name of the check in the policy")
    kind: Literal["budget", "change", "rule", "missing", "exception", "tuned"] = Field(
        description="missing: what is needed for a judgement is not known, or a trace is damaged; "
        "exception: about an exception of the policy that has expired or covers nothing; tuned: about a setting that "
        "`vani tune` proved"
    )
    level: Level = Field(description="severity if the check fails")
    status: Literal["pass", "fail", "excepted", "unknown"] = Field(
        description="unknown: the attribute is null, or the check does not judge it"
    )
    attribute: str | None = Field(description="path in the profile, or null")
    target: str | None = Field(description="file or app that the judgement is about, or null")
    value: Number | str
    limit: str | None = Field(description="what is allowed, as in the policy: `<= 1e5`")
    baseline: Number = Field(description="value in the baseline, or null")
    change: float | None = Field(description="(value - baseline) / baseline, or null")
    message: str = Field(description="one line: value and limit")
    reason: str | None = Field(description="why the policy requires this, in its own words")
    todo: str | None = Field(description="one line: what to do about it")
    excepted: Excepted | None
    place: PolicyPlace | None


class Cause(Model):
    """A change of the run from which several failures follow."""

    kind: Literal[
        "independent", "smaller_accesses", "more_data", "order", "metadata", "flushing", "new_files", "processes",
        "slower",
    ]  # fmt: skip
    message: str = Field(description="one line: what changed, in which file and phase")
    todo: str = Field(description="one line: what to do about it")
    rules: list[str] = Field(description="ids of rules with details: `vani explain ID`")
    files: list[str] = Field(description="paths of the files that changed so; empty where no file is involved")
    io_time_s: float | None = Field(description="I/O time of this run in the changed parts, or null")
    judgements: list[str] = Field(description="ids of the failures that follow from it")


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
    damage: str | None = Field(
        default=None,
        description="what the profile's traces lost, as a sentence: they may differ from the whole run; "
        "null where they are complete",
    )
    policy: Source | None
    baselines: list[Source]
    tuned: Source | None = Field(default=None, description="the tuned.yaml that the run is compared with, or null")
    fail_on: Level
    verdict: Literal["pass", "pass with warnings", "fail"] = Field(
        description="pass with warnings: something failed below the level of `fail_on`, a warning or worse"
    )
    counts: CheckCounts
    judgements: list[Judgement]
    causes: list[Cause] = Field(
        default_factory=list,
        description="causes of failures, costliest first; each failure has at most one",
    )
    storage: StorageVerdict | None = Field(
        default=None, description="whether storage matters to the run, as the profile has it"
    )
    io_share: str | None = Field(
        default=None, description="statement that I/O takes too little of the run for any change to matter, or null"
    )
