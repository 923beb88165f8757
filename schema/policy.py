"""vani.toml or .vani.yaml: the requirements of `vani check` for a profile, and settings that other commands read."""

import re
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from vani.schema.check import Level
from vani.schema.model import Model, schema_field

Direction = Literal["increase", "decrease", "both"]
"""Direction of changes that count."""
Severity = Literal["high", "medium", "low", "info"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Expression = Annotated[str, Field(min_length=1, max_length=2000)]
Pattern = Annotated[str, Field(min_length=1, max_length=1000)]
Reason = Annotated[str, Field(min_length=1, max_length=2000)]
Positive = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantity = Positive | Annotated[str, Field(min_length=1, max_length=60)]


def _day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("a day such as 2026-12-31")


Day = Annotated[date, BeforeValidator(_day)]


class Budget(Model):
    """A bound that an attribute must keep: one `[[check.budget]]`."""

    expect: Expression = Field(description="attribute, comparison and limit, such as `workflow.io.ops.metadata <= 1e5`")
    name: Name | None = Field(default=None, description="name in reports; defaults to the attribute")
    level: Level = Field(default="error", description="severity of a violation")
    required: bool = Field(default=False, description="true if a null attribute, or no match, is a failure too")
    reason: Reason | None = Field(default=None, description="reason given by the author of the policy")


class Change(Model):
    """How far an attribute may be from the baseline: one `[[check.change]]`."""

    attribute: Expression = Field(description="path in the profile, or an aggregate such as `apps[*].io.ops.*`")
    relative: Quantity | None = Field(
        default=None,
        description='tolerance as a share of the baseline value: 0.1 or "10 %"; taken from the table of tolerances if '
        "neither this nor `absolute` is given",
    )
    absolute: Quantity | None = Field(
        default=None,
        description='tolerance in the unit of the attribute: 4096, "4 KiB", "0.1 s"; the larger of `relative` and '
        "`absolute` applies",
    )
    direction: Direction | None = Field(
        default=None, description="direction of change that is bad; defaults to that in the table of tolerances"
    )
    name: Name | None = Field(default=None, description="name in reports; defaults to `change of` and the attribute")
    level: Level | None = Field(
        default=None,
        description="severity of a larger change; defaults to that in the table of tolerances, or to an error for a "
        "time that is significantly longer",
    )
    required: bool = Field(default=False, description="true if a missing baseline value is a failure too")
    reason: Reason | None = Field(default=None, description="reason given by the author of the policy")


class Rules(Model):
    """Advice that is not accepted: `[check.rules]`."""

    fail_on_severity: Severity | None = Field(
        default=None, description="lowest severity of a recommendation that is a violation"
    )
    forbid: list[Name] = Field(
        default_factory=list, description="rules that may not recommend anything, as IDs, names, families or prefixes"
    )
    ignore: list[Name] = Field(
        default_factory=list, description="rules that are not evaluated, in the same form"
    )
    level: Level = Field(default="error", description="severity of a violation")
    levels: dict[str, Level] = Field(
        default_factory=dict, description="severity of a violation for individual rules, by ID or name"
    )
    reason: Reason | None = Field(default=None, description="reason given by the author of the policy")


class ExceptionSpec(Model):
    """An exception for a while: one `[[check.except]]`; all keys given must fit."""

    until: Day = Field(description="last day on which the exception applies, such as 2026-12-31")
    reason: Reason = Field(description="reason for the exception")
    check: Pattern | None = Field(default=None, description="name of the check, with * and ? as wildcards")
    attribute: Expression | None = Field(default=None, description="path in the profile")
    target: Pattern | None = Field(default=None, description="file or app, with * and ? as wildcards")
    rule: Name | None = Field(default=None, description="ID or name of a rule of `vani advise`")


class Paths(Model):
    """How files of different runs are recognised as the same: `[check.paths]`."""

    strip: list[Pattern] = Field(
        default_factory=list,
        description="path prefixes that differ from run to run, matched folder by folder, with * and ? as wildcards",
    )


class CheckTable(Model):
    """The table `[check]`, which `vani check` reads."""

    baseline: str | list[str] | None = Field(
        default=None,
        description="baselines or profiles to compare with: files, folders or globs, relative to the folder of the "
        "policy; defaults to .vani/baseline.yaml there, if it exists",
    )
    defaults: bool | None = Field(
        default=None,
        description="true to compare the built-in list of attributes with the baseline; defaults to true if there is "
        "no `change`",
    )
    system: str | None = Field(
        default=None, description="machine for which the rules judge: a bundled name, or a file relative to the policy"
    )
    fail_on: Level = Field(default="error", description="lowest severity that makes the check fail")
    false_alarms: Annotated[float, Field(gt=0, le=0.5)] = Field(
        default=0.02,
        description="highest probability that a check of an unchanged program fails because of its times",
    )
    budget: list[Budget] = Field(default_factory=list, max_length=1000, description="limits on attributes")
    change: list[Change] = Field(
        default_factory=list, max_length=1000, description="allowed deviations of attributes from the baseline"
    )
    rules: Rules | None = Field(default=None, description="advice that is not accepted")
    except_: list[ExceptionSpec] = Field(
        alias="except", default_factory=list, max_length=1000, description="temporary exceptions"
    )
    paths: Paths = Field(default_factory=Paths, description="rules for matching files of different runs")


class Policy(Model):
    """The settings of a project: requirements of `vani check`, and settings of `vani advise --config`."""

    schema_: Literal["vani.policy/1"] = schema_field("vani.policy/1")
    check: CheckTable | None = Field(default=None, description="settings of `vani check`")
    advise: dict[str, Any] | None = Field(
        default=None, description="settings of `vani advise --config`; the rules of a check use them too"
    )
