"""A history of runs: the ranking of groups that lose most, and the story of one application.

Costs are seconds of processes: `in_io_s` adds up what all processes spend in I/O calls, `waiting_s` is the time of the
slowest process times the number of processes, since the others mostly wait for it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

__all__ = [
    "Behaviour",
    "Category",
    "CategoryOutcome",
    "Costs",
    "Daily",
    "HistoryContents",
    "HistoryMonth",
    "Member",
    "Month",
    "Outcome",
    "PlanScore",
    "Promise",
    "RankedRow",
    "RankedSetting",
    "Ranking",
    "Saved",
    "Spread",
    "State",
    "Story",
    "TargetRow",
    "WholeHistory",
    "WorstRun",
]

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Moment = Annotated[float, Field(allow_inf_nan=False)]
State = Literal["saves", "gain_unknown", "nothing_found"]
"""The outcome of the advice on judged runs; `vani.history.saved.state_of` decides on it."""


class Costs(Model):
    """The cost of runs."""

    runs: Count = Field(description="runs; copies of a log count once")
    core_s: Seconds = Field(description="processes times run time, added up")
    in_io_s: Seconds = Field(description="time of all processes in I/O calls")
    waiting_s: Seconds = Field(
        description="processes times the slowest process's time in I/O calls, added up"
    )


class Saved(Model):
    """The expected gain of following the advice, in the unit of `waiting_s`."""

    state: State = Field(
        description="saves: the saving is estimated; gain_unknown: something is recommended, but its saving is "
        "not known; "
        "nothing_found: no rule recommends anything"
    )
    low_s: Seconds
    expected_s: Seconds
    high_s: Seconds
    judged_runs: Count = Field(description="runs that were judged; the range is from their least to their most")
    judged_share: Share = Field(
        description="share of `waiting_s` of applications and users with a judged run"
    )
    typical_machine: bool = Field(
        description="the figures are for a typical machine, because the machine itself is not described"
    )
    rule: str = Field(
        description="rule of the recommendation that saves most, or of the first where none has a number; empty: "
        "nothing is recommended"
    )
    setting: str = Field(description="that recommendation in a few words")
    why: str = Field(description="what is wrong, in a sentence")


class RankedRow(Costs):
    """One group of runs; keys that do not distinguish groups are null."""

    application: str | None = None
    user: str | None = None
    processes: Count | None = None
    file_system: str | None = Field(default=None, description="its type; empty where it is not known")
    mount: str | None = Field(default=None, description="its folder; empty where it is not known")
    account: str | None = Field(default=None, description="of the accounting; empty where it has no such job")
    qos: str | None = Field(default=None, description="of the accounting; empty where it has no such job")
    saved: Saved | None = Field(description="null where no run of the group was judged")


class Member(Model):
    """A user and application that a setting would serve."""

    application: str
    user: str
    expected_s: Seconds


class RankedSetting(Model):
    """A setting, and the users and applications it would serve."""

    rule: str
    setting: str = Field(description="as for the pair with the largest saving")
    why: str
    low_s: Seconds
    expected_s: Seconds
    high_s: Seconds
    judged_runs: Count = Field(description="runs that were judged")
    typical_machine: bool = Field(description="as in `saved`")
    members: list[Member] = Field(description="largest saving first")


class WholeHistory(Costs):
    """All runs of the period."""

    users: Count
    first: Moment | None = Field(description="when the first run began, seconds since 1970")
    last: Moment | None = Field(description="when the last run began")
    damaged: Count = Field(description="files that could not be read, of all periods")


class Ranking(Model):
    """The groups that lose most time, and the settings that would save it."""

    schema_: Literal["vani.history/1"] = Field(alias="schema", default="vani.history/1")
    by: Literal["pair", "user", "app", "category", "file-system", "account", "qos"] = Field(
        description="pair: application and user; category: these and the number of processes; account, qos: of jobs"
    )
    since: Moment | None = Field(description="runs that began then or later, seconds since 1970")
    until: Moment | None = Field(description="runs that began before")
    whole: WholeHistory
    groups: Count = Field(description="of which `rows` are the first")
    concentration: Count = Field(description="groups that take 70 % of the time in I/O calls")
    rows: list[RankedRow] = Field(
        description="first the largest savings, then those with unknown gain, costliest first; then savings "
        "below 0.1 % of all waiting; then all others, costliest first"
    )
    settings: list[RankedSetting] | None = Field(default=None, description="requested by `--settings`")


class Spread(Model):
    """How a figure differs from run to run."""

    least: float
    median: float
    most: float


class Category(Model):
    """Runs of one user with one number of processes."""

    user: str
    processes: Count
    runs: Count
    in_io_s: Spread | None
    waiting_s: Spread | None


class Month(Costs):
    """Runs that began in a month."""

    month: str = Field(description="YYYY-MM, in UTC")


class Behaviour(Model):
    """A change of a category's figure."""

    user: str
    processes: Count
    at: Moment = Field(description="when the first run of the new kind began")
    figure: Literal["bytes", "in_io_s", "waiting_s"]
    before: float = Field(description="median of the runs before")
    after: float = Field(description="median of the runs since")


class WorstRun(Model):
    """The run that cost most."""

    user: str
    processes: Count
    submitted: Moment | None
    runtime_s: Seconds | None
    in_io_s: Seconds | None
    waiting_s: Seconds | None
    bytes_read: Count | None
    bytes_written: Count | None
    paths: list[str] = Field(description="files that it was read from")


class Story(Costs):
    """Everything the history knows about an application."""

    application: str
    user: str | None = Field(description="null: of all users")
    months: list[Month]
    categories: list[Category]
    changes: list[Behaviour]
    worst: WorstRun | None
    saved: Saved | None = Field(description="null where no run was judged")
    lines: list[str] = Field(description="lines to paste, of the recommendation that saves most")


class Promise(Model):
    """The recommendation of a letter, and the share of the waiting that following it saves."""

    rule: str = Field(description="empty: nothing was recommended")
    setting: str
    low: Share | None = Field(description="null: no number was promised")
    expected: Share | None
    high: Share | None


class CategoryOutcome(Model):
    """Runs of one user with one number of processes, before and after a letter or a change."""

    user: str
    processes: Count
    runs_before: Count = Field(description="in the 90 days before")
    runs_after: Count
    before_s: Seconds | None = Field(description="mean waiting of a run before, in core-seconds")
    after_s: Seconds | None = Field(description="mean waiting of a run after")
    saved_s: float | None = Field(
        description="runs after, times the difference of the means; null where the verdict gives the reason"
    )
    low_s: float | None = Field(description="nine of ten resamplings are from here")
    high_s: float | None = Field(description="to here")
    verdict: Literal["less", "more", "no_difference", "too_few_runs", "other_amounts"] = Field(
        description="less: it waits less than before; too_few_runs: fewer than five before or after; "
        "other_amounts: its runs move at least 1.5 times as many or as few bytes and cannot be compared"
    )


class PlanScore(Model):
    """The quality of the plans of jobs of one name and user; times are seconds of I/O of the slowest process."""

    name: str = Field(description="of the job")
    user: str
    jobs: Count = Field(description="that ended with a plan")
    judged: Count = Field(description="with both expected and measured times")
    ratio: Seconds | None = Field(description="median of measured / expected; null: none is judged")
    low: Seconds | None = Field(description="one in ten had less")
    high: Seconds | None = Field(description="one in ten had more")
    within: Share | None = Field(description="share of the judged in the range that was expected")
    changed: Count = Field(description="jobs to which a plan gave other stripes or OSTs")
    gain: Seconds | None = Field(description="median of these: time expected without the change / measured")
    worse: Count = Field(description="of these: took 1.1 times as long as expected without the change")
    reasons: list[str] = Field(description="why figures of some are missing")


class Outcome(Model):
    """The waiting before and after a letter or a change."""

    application: str
    user: str | None = Field(description="null: of all users")
    at: Moment = Field(description="when the letter was written, or the change made, seconds since 1970")
    promise: Promise | None = Field(description="of the letter; null for a change")
    categories: list[CategoryOutcome]
    saved_s: float | None = Field(description="sum over categories that can be compared; null: there is none")
    low_s: float | None = Field(description="nine of ten resamplings are from here; null: see `saved_s`")
    high_s: float | None = Field(description="to here")
    before_s: Seconds | None = Field(description="the waiting of these runs, had nothing changed")


class Daily(Model):
    """Runs of one user, number of processes, file system and amount that are repeated, such as a daily benchmark."""

    user: str
    processes: Count
    mount: str
    bytes_read: Count = Field(description="by the latest run; others differ by a factor of 1.2 at most")
    bytes_written: Count = Field(description="see `bytes_read`")
    runs: Count
    at: Moment = Field(description="when the latest run began, seconds since 1970")
    last_s: Seconds = Field(description="time of its slowest process in I/O calls")
    usual_s: Seconds = Field(description="median of the seven runs before it")
    low: Annotated[float, Field(ge=0)] | None = Field(
        description="nine of ten runs take at least this many times the median of the seven before them; null: "
        "not known"
    )
    high: Annotated[float, Field(ge=0)] | None = Field(
        description="nine of ten runs take at most this many times that median"
    )
    verdict: Literal["slower", "usual", "faster", "unknown"] = Field(description="of the latest run")
    next_s: Seconds = Field(description="expected of the next run: the median of the last seven")


class TargetRow(Model):
    """A storage target, and the time that files take on it; a file on n targets counts 1/n on each."""

    mount: str = Field(description="folder of its file system")
    target: Count = Field(description="its number, as `lfs osts` prints it")
    runs: Count = Field(description="runs with a file on it that can be compared with others")
    files: Annotated[float, Field(ge=0)]
    mean_s: Seconds = Field(description="time in reads and writes of a file on it, mean over the runs")
    median_s: Seconds = Field(description="median over the runs")
    times: Annotated[float, Field(ge=0)] = Field(
        description="how many times as long as on the median target of runs like these; median over the runs"
    )
    lost_s: Seconds = Field(description="total extra seconds of its files")
    slow: bool = Field(description="at least two files, five times as long in half of the runs, and a second lost")
    jobs: list[str] = Field(
        default_factory=list, description="at most three jobs of the batch system, largest losses first"
    )


class HistoryMonth(Model):
    """Runs that began in a month."""

    month: str | None = Field(description="YYYY-MM, in UTC; null: when they began is not known")
    runs: Count
    users: Count


class MeasuredSetting(Model):
    """A setting that `vani tune` tried with an application."""

    application: str | None
    user: str
    machine: str | None = Field(description="name of its description; null: none, or one of typical figures")
    processes: Count | None
    nodes: Count | None
    setting: str = Field(description="in words")
    rules: list[str] = Field(description="that recommended it")
    verdict: str = Field(
        description="proven; not_proven: it looked faster; no_gain; failed: the program did not end as it should"
    )
    speedup: float | None = Field(description="times as fast as without it; null: the program failed")
    low: float | None = Field(description="lower end of its interval; null: too few runs")
    high: float | None = Field(description="upper end")
    runs: Count = Field(description="with the setting")
    day: str = Field(description="YYYY-MM-DD, in UTC")


class HistoryContents(Model):
    """The runs and measured settings in a history."""

    place: str
    runs: Count
    profiles: Count = Field(description="whole profiles")
    judged: Count = Field(description="runs whose savings are known")
    damaged: Count = Field(description="files that could not be read")
    anonymised: bool
    months: list[HistoryMonth]
    settings: list[MeasuredSetting] = Field(description="the latest first")
