"""A history of runs: the ranking of groups that lose most, and the story of one application.

Costs are seconds of processes: `in_io_s` adds up what all processes spend in I/O calls, `waiting_s` is the time of the
slowest process times the number of processes, since the others mostly wait for it.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Moment = Annotated[float, Field(allow_inf_nan=False)]
State = Literal["saves", "gain_unknown", "nothing_found"]
"""The outcome of the advice on judged runs; `vani.centre.history.ranking.state_of` decides on it."""


class Costs(Model):
    """The cost of runs."""

    runs: Count = Field(description="number of runs; copies of a log count once")
    core_s: Seconds = Field(description="core-seconds: processes times run time, summed")
    in_io_s: Seconds = Field(description="core-seconds of all processes in I/O calls")
    waiting_s: Seconds = Field(
        description="core-seconds of waiting: processes times time of the slowest process in I/O calls, summed"
    )


class Saved(Model):
    """The expected gain of following the advice, in the unit of `waiting_s`."""

    state: State = Field(
        description="knowledge about the saving. saves: the saving is estimated; gain_unknown: a recommendation "
        "exists, but its saving is unknown; nothing_found: no rule recommends anything"
    )
    low_s: Seconds | None = Field(description="lower end; null, like the next two, if the gain is unknown")
    expected_s: Seconds | None
    high_s: Seconds | None
    judged_runs: Count = Field(
        description="number of judged runs; the range spans their smallest to their largest saving"
    )
    judged_share: Share = Field(description="share of `waiting_s` in applications and users with a judged run")
    typical_machine: bool = Field(
        description="true if the figures assume a typical machine because the actual machine is not described"
    )
    rule: str = Field(
        description="rule of the recommendation with the largest saving, or the first one if none has a number; empty "
        "if nothing is recommended"
    )
    severity: Count = Field(description="severity of that recommendation: 0 (info) to 3 (high)")
    setting: str = Field(description="recommended setting in a few words")
    why: str = Field(description="problem that the recommendation solves, in one sentence")


class RankedRow(Costs):
    """One group of runs; keys that do not distinguish groups are null."""

    application: str | None = None
    user: str | None = None
    processes: Count | None = None
    file_system: str | None = Field(default=None, description="file-system type; empty if unknown")
    mount: str | None = Field(default=None, description="mount point of the file system; empty if unknown")
    account: str | None = Field(
        default=None, description="account from the accounting records; empty if they do not contain the job"
    )
    qos: str | None = Field(
        default=None, description="quality of service from the accounting records; empty if they do not contain the job"
    )
    saved: Saved | None = Field(description="expected saving; null if no run of the group was judged")


class Member(Model):
    """A user and application that a setting would serve."""

    application: str
    user: str
    expected_s: Seconds


class RankedSetting(Model):
    """A setting, and the users and applications it would serve."""

    rule: str
    setting: str = Field(
        description="setting in a few words, as recommended for the application and user with the largest saving"
    )
    why: str
    low_s: Seconds
    expected_s: Seconds
    high_s: Seconds
    judged_runs: Count = Field(description="number of judged runs")
    typical_machine: bool = Field(
        description="true if the figures assume a typical machine because the actual machine is not described"
    )
    members: list[Member] = Field(
        description="applications and users that the setting would help, largest saving first"
    )


class WholeHistory(Costs):
    """All runs of the period."""

    users: Count
    first: Moment | None = Field(description="start of the first run, seconds since 1970")
    last: Moment | None = Field(description="start of the last run, seconds since 1970")
    damaged: Count = Field(description="number of unreadable files, over all periods")


class Ranking(Model):
    """The groups that lose most time, and the settings that would save it."""

    schema_: Literal["vani.history/1"] = Field(alias="schema", default="vani.history/1")
    by: Literal["pair", "user", "app", "category", "file-system", "account", "qos"] = Field(
        description="grouping. pair: application and user; category: these and the number of processes; account, qos: "
        "attributes of the job"
    )
    since: Moment | None = Field(description="start of the period, seconds since 1970")
    until: Moment | None = Field(description="end of the period (exclusive), seconds since 1970")
    whole: WholeHistory
    groups: Count = Field(description="number of groups, including those beyond `rows`")
    concentration: Count = Field(description="number of groups that account for 70 % of the time in I/O calls")
    rows: list[RankedRow] = Field(
        description="groups in this order: largest saving first; then unknown gain, costliest first; then savings "
        "below 0.1 % of all waiting; then all others, costliest first"
    )
    settings: list[RankedSetting] | None = Field(
        default=None, description="settings that would save most, if `--settings` was given"
    )


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

    month: str = Field(description="month as YYYY-MM, in UTC")


class Behaviour(Model):
    """A change of a category's figure."""

    user: str
    processes: Count
    at: Moment = Field(description="start of the first run with the new behaviour")
    figure: Literal["bytes", "in_io_s", "waiting_s"]
    before: float = Field(description="median of the runs before the change")
    after: float = Field(description="median of the runs since the change")


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
    paths: list[str] = Field(description="paths of the files that contain the run")


class Story(Costs):
    """Everything the history knows about an application."""

    application: str
    user: str | None = Field(description="user of the runs; null for all users")
    months: list[Month]
    categories: list[Category]
    changes: list[Behaviour]
    worst: WorstRun | None
    saved: Saved | None = Field(description="expected saving; null if no run was judged")
    lines: list[str] = Field(description="lines to paste that apply the recommendation with the largest saving")


class Promise(Model):
    """The recommendation of a letter, and the share of the waiting that following it saves."""

    rule: str = Field(description="rule of the recommendation; empty if nothing was recommended")
    setting: str
    low: Share | None = Field(description="lower end of the promised share; null if no number was promised")
    expected: Share | None
    high: Share | None


class CategoryOutcome(Model):
    """Runs of one user with one number of processes, before and after a letter or a change."""

    user: str
    processes: Count
    runs_before: Count = Field(description="number of runs in the 90 days before the letter or change")
    runs_after: Count
    before_s: Seconds | None = Field(description="mean waiting per run before, in core-seconds")
    after_s: Seconds | None = Field(description="mean waiting per run after, in core-seconds")
    saved_s: float | None = Field(
        description="number of runs after times the difference of the two means, in core-seconds; null if `verdict` "
        "explains why they cannot be compared"
    )
    low_s: float | None = Field(description="5th percentile of `saved_s` over resamplings of the runs")
    high_s: float | None = Field(description="95th percentile of `saved_s` over resamplings of the runs")
    verdict: Literal["less", "more", "no_difference", "too_few_runs", "other_amounts"] = Field(
        description="change in waiting. less: runs wait less than before; too_few_runs: fewer than five before or "
        "after; other_amounts: runs move at least 1.5 times as many or as few bytes as before, so that they cannot be "
        "compared"
    )


class ChangeOutcome(Model):
    """The waiting before and after a letter or a change."""

    application: str
    user: str | None = Field(description="user of the runs; null for all users")
    at: Moment = Field(description="date of the letter or change, seconds since 1970")
    promise: Promise | None = Field(description="promise of the letter; null for a change")
    categories: list[CategoryOutcome]
    saved_s: float | None = Field(
        description="saving summed over the categories that can be compared, in core-seconds; null if there are none"
    )
    low_s: float | None = Field(
        description="5th percentile of `saved_s` over resamplings of the runs; null if `saved_s` is null"
    )
    high_s: float | None = Field(
        description="95th percentile of `saved_s` over resamplings of the runs; null if `saved_s` is null"
    )
    before_s: Seconds | None = Field(
        description="expected waiting of the same runs without the change, in core-seconds"
    )


class Daily(Model):
    """Runs of one user, number of processes, file system and amount that are repeated, such as a daily benchmark."""

    user: str
    processes: Count
    mount: str
    bytes_read: Count = Field(
        description="bytes read by the latest run; the other runs differ by at most a factor of 1.2"
    )
    bytes_written: Count = Field(
        description="bytes written by the latest run; the other runs differ by at most a factor of 1.2"
    )
    runs: Count
    at: Moment = Field(description="start of the latest run, seconds since 1970")
    last_s: Seconds = Field(description="time of the slowest process of the latest run in I/O calls")
    usual_s: Seconds = Field(description="median time of the seven runs before the latest one")
    low: Annotated[float, Field(ge=0)] | None = Field(
        description="lower end of the usual range, as a multiple of the median of the seven runs before; nine of ten "
        "runs are within the range; null if unknown"
    )
    high: Annotated[float, Field(ge=0)] | None = Field(
        description="upper end of the usual range, as a multiple of that median; null if unknown"
    )
    verdict: Literal["slower", "usual", "faster", "unknown"] = Field(description="verdict on the latest run")
    next_s: Seconds = Field(description="expected time of the next run: the median of the last seven")


class TargetRow(Model):
    """A storage target, and the time that files take on it; a file on n targets counts 1/n on each."""

    mount: str = Field(description="mount point of the file system")
    target: Count = Field(description="index of the target, as printed by `lfs osts`")
    runs: Count = Field(description="number of runs with a file on the target that can be compared with others")
    files: Annotated[float, Field(ge=0)]
    mean_s: Seconds = Field(description="read and write time of a file on the target, mean over the runs")
    median_s: Seconds = Field(description="read and write time of a file on the target, median over the runs")
    times: float = Field(
        ge=0, description="slowdown relative to the median target of comparable runs, median over the runs"
    )
    lost_s: Seconds = Field(description="total extra time of the files on the target")
    slow: bool = Field(
        description="true if the target has at least two files, takes five times as long in half of the runs, and "
        "lost a second or more"
    )
    jobs: list[str] = Field(
        default_factory=list, description="up to three batch jobs that lost most time on the target"
    )


class HistoryMonth(Model):
    """Runs that began in a month."""

    month: str | None = Field(description="month as YYYY-MM, in UTC; null if the start of the runs is unknown")
    runs: Count
    users: Count


class MeasuredSetting(Model):
    """A setting that `vani tune` tried with an application."""

    application: str | None
    user: str
    machine: str | None = Field(
        description="name of the system description; null if there is none or its figures are typical values"
    )
    processes: Count | None
    nodes: Count | None
    setting: str = Field(description="setting in words")
    rules: list[str] = Field(description="rules that recommended the setting")
    verdict: str = Field(
        description="result of the measurement. proven; not_proven: it looked faster, but this may be chance; "
        "no_gain; failed: the program did not end successfully"
    )
    speedup: float | None = Field(
        description="run time without the setting / run time with it; null if the program failed"
    )
    low: float | None = Field(description="lower end of the interval of `speedup`; null if there were too few runs")
    high: float | None = Field(description="upper end of the interval of `speedup`; null if there were too few runs")
    runs: Count = Field(description="number of runs with the setting")
    day: str = Field(description="day of the measurement as YYYY-MM-DD, in UTC")


class HistoryContents(Model):
    """The runs and measured settings in a history."""

    place: str
    runs: Count
    profiles: Count = Field(description="number of complete profiles")
    judged: Count = Field(description="number of runs with a known saving")
    damaged: Count = Field(description="number of files that could not be read")
    anonymised: bool
    months: list[HistoryMonth]
    settings: list[MeasuredSetting] = Field(description="measured settings, latest first")
