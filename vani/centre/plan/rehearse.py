"""A rehearsal of the hook with past jobs, before anyone enables it."""

from __future__ import annotations

import csv
import io
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from vani.centre.plan.pools import pools_of, sharing_settings
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import State
from vani.errors import InputError, one_line
from vani.render.table import cell
from vani.schema.document import Document
from vani.schema.model import Model
from vani.units import counted, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.history.accounting import SacctJob
    from vani.centre.plan.job_settings import SharingRules
    from vani.centre.plan.schema.plans import Allotment

# rehearsal.yaml: what a batch system's hook would have done with jobs that ran; `vani plan rehearse` writes it.

class RehearsedJob(Model):
    """A completed job, and the settings the hook would have given it; unknown values are null."""

    job: str = Field(description="job ID of the batch system")
    name: str | None = Field(description="job name given by the user")
    user: str | None = Field(description="owner of the job")
    nodes: int | None = Field(description="number of compute nodes")
    started: float | None = Field(description="start in seconds since 1970")
    access: Literal["direct", "own", "shared"] | None = Field(
        default=None, description="access to the file system that the job would have had, as in a plan of kind `job`"
    )
    io_nodes: int | None = Field(default=None, description="number of I/O nodes that the job would have had")
    usual_io_nodes: int | None = Field(default=None, description="number of I/O nodes under the `static` policy")
    bandwidth: float | None = Field(default=None, description="expected bandwidth with `io_nodes`, bytes per second")
    usual_bandwidth: float | None = Field(
        default=None, description="expected bandwidth with `usual_io_nodes`, bytes per second"
    )
    io_s: float | None = Field(
        default=None, description="seconds of the slowest process in I/O calls, from the job's log"
    )
    saved_s: float | None = Field(default=None, description="expected saving in seconds of `io_s`")
    low_s: float | None = Field(
        default=None, description="lower end of the saving, from the scatter of the job's curve"
    )
    high_s: float | None = Field(
        default=None, description="upper end of the saving, from the scatter of the job's curve"
    )
    reason: str = Field(default="", description="reason why no saving can be given; empty if it can")


class RehearsedApplication(Model):
    """Jobs with one name; seconds are sums over jobs with a known saving."""

    name: str = Field(description="application name; empty for jobs without a name")
    jobs: int = Field(description="number of jobs that ran")
    known: int = Field(description="number of jobs whose saving is known")
    io_s: float = Field(description="seconds of the slowest processes in I/O calls, summed over jobs")
    saved_s: float = Field(description="expected saving in seconds")
    low_s: float = Field(description="lower end of the saving")
    high_s: float = Field(description="upper end of the saving")


class Rehearsal(Document):
    """All jobs of an accounting file, planned as the hook plans them."""

    schema_: Literal["vani.rehearsal/1"] = Field(
        alias="schema", default="vani.rehearsal/1", description="name and version of this schema"
    )
    jobs: list[RehearsedJob] = Field(description="jobs by start time")
    applications: list[RehearsedApplication] = Field(description="applications by name, largest saving first")
    reasons: dict[str, int] = Field(description="number of jobs without a saving, by reason")


# Implements `vani plan rehearse`: what the hook would have done with past jobs, before anyone enables it.
#
# The jobs of an accounting file start and end again in a separate state. The planner of `vani plan job` itself plans
# for each, so that nothing is computed differently. Without the hook, a job is assumed to get what `static` gives
# from the same pool.

Factors = tuple[float, float, float]
_MAX_JOBS: Final = 100_000
_SAME: Final[Factors] = (1.0, 1.0, 1.0)


def rehearse(
    jobs: Iterable[SacctJob], rules: SharingRules, *, io_seconds: Callable[[str], float | None] = lambda _: None
) -> Rehearsal:
    """Plan past jobs as the hook would have done.

    Parameters
    ----------
    io_seconds
        Slowest process's seconds in I/O calls, from the log of a job by its number; None without a log.

    Raises
    ------
    InputError
        There are no jobs or more than 100,000, or the rules give no pool.
    """
    listed = list(jobs)
    if not listed or len(listed) > _MAX_JOBS:
        todo = "write the jobs of a month" if listed else "see `vani plan rehearse --help`"
        raise InputError(f"has {len(listed):,} jobs", where="the accounting", todo=todo)
    # Without this, each job would have the same reason.
    if rules.io_nodes == 0 and rules.snapshot is None:
        raise InputError("gives the plan neither I/O nodes nor OSTs", where="--io-nodes 0", todo="name --snapshot, too")
    pools_of(rules)
    sharing_settings(rules)
    if rules.known is not None and not rules.known.is_dir():
        raise InputError("no such folder", where=rules.known, todo="name the folder that `vani plan learn` writes")
    whole = [job for job in listed if _lack(job) is None]
    planned = _simulated(whole, rules)
    usual = _simulated(whole, rules.model_copy(update={"policy": "static"}))
    rows = []
    for job in sorted(listed, key=lambda entry: (entry.job.started is None, entry.job.started or 0.0, entry.job.job)):
        number = job.job.job
        lack = _lack(job)
        plain = RehearsedJob(
            job=number,
            name=job.name,
            user=job.job.user,
            nodes=job.job.nodes,
            started=job.job.started,
            reason=lack or "",
        )
        rows.append(plain if lack else _row(plain, planned[number], usual[number], io_seconds(number)))
    reasons = Counter(row.reason for row in rows if row.reason)
    return Rehearsal(jobs=rows, applications=summary_of(rows), reasons=dict(reasons))


def rehearse_files(
    accounting: Path, rules: SharingRules, history: str | None, say: Callable[[str], None]
) -> Rehearsal:
    """Plan the jobs in a file written by sacct, with the I/O times of a history.

    Parameters
    ----------
    say
        Called with a message for each line that is not a job.

    Raises
    ------
    InputError
        As in `rehearse`, or the file or the history cannot be read.
    """
    from vani.centre.history.accounting import SacctJob, read_sacct  # noqa: PLC0415 - takes the extra of the history

    jobs = []
    for entry in read_sacct(accounting):
        if isinstance(entry, SacctJob):
            jobs.append(entry)
        else:
            say(str(entry))
    seconds: dict[str, float] = {}
    if history is not None:
        from vani.centre.history.runs import read  # noqa: PLC0415 - needs the database's library
        from vani.centre.history.runs.store import Store  # noqa: PLC0415

        with Store(history).reading() as connection:
            seconds = read.io_seconds_of(connection, [job.job.job for job in jobs])
    return rehearse(jobs, rules, io_seconds=seconds.get)


def _lack(job: SacctJob) -> str | None:
    if not job.job.nodes:
        return "the accounting does not give its number of nodes"
    if job.job.started is None:
        return "it never started"
    if job.job.elapsed_s is None:
        return "the accounting does not give its run time"
    return None


def _simulated(jobs: Sequence[SacctJob], rules: SharingRules) -> dict[str, JobPlan | str]:
    """The plan that each job gets when it starts, or why it gets none."""
    events: list[tuple[float, bool, int]] = []
    for place, job in enumerate(jobs):
        assert job.job.started is not None
        assert job.job.elapsed_s is not None
        # A job that ends at the moment another one starts has already left.
        begin, seconds = job.job.started, job.job.elapsed_s
        events += [(begin, True, place), (begin + seconds, seconds == 0, place)]
    plans: dict[str, JobPlan | str] = {}
    begun: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="vani-rehearsal-") as folder:
        state = State(Path(folder) / "state")
        for _, _, place in sorted(events):
            number = jobs[place].job.job
            if place in begun:
                state.forget(number)
                _planned(state, rules, None)
                continue
            begun.add(place)
            state.register(_environment(jobs[place]))
            lack = _planned(state, rules, number)
            plans[number] = JobPlan.load(state.file_of(number, "yaml")) if lack is None else lack
    return plans


def _environment(job: SacctJob) -> dict[str, str]:
    facts = {
        "ID": job.job.job, "NAME": job.name, "USER": job.job.user, "ACCOUNT": job.job.account, "QOS": job.job.qos,
        "PARTITION": job.job.partition, "NODES": str(job.job.nodes), "HOSTS": f"n[1-{job.job.nodes}]",
    }  # fmt: skip
    return {f"VANI_JOB_{key}": value for key, value in facts.items() if value is not None}


def _planned(state: State, rules: SharingRules, number: str | None) -> str | None:
    """Plan for all running jobs; return why there is no plan for job `number`, or None if there is one."""
    try:
        plan_running_jobs(state, rules, number, now_s=time.time(), say=lambda _: None)
    except InputError as error:
        if number is None:
            return None
        return error.what
    return None


def _row(
    plain: RehearsedJob, plan: JobPlan | str, usual: JobPlan | str, io_s: float | None
) -> RehearsedJob:
    if isinstance(plan, str):
        return _with(plain, reason=plan)
    own, other = plan.allotment, usual.allotment if isinstance(usual, JobPlan) else None
    row = _with(
        plain,
        access=plan.access,
        io_nodes=len(plan.io_nodes) if plan.access is not None else None,
        usual_io_nodes=None if isinstance(usual, str) or usual.access is None else len(usual.io_nodes),
        bandwidth=None if own is None else own.bandwidth,
        usual_bandwidth=None if other is None else other.bandwidth,
        io_s=io_s,
    )
    if plan.access is None:
        return _with(row, reason=plan.unplaced[0].reason if plan.unplaced else "no plan")
    nodes, stripes = _by_io_nodes(row, own, other), _by_stripes(plan)
    if nodes is None and stripes is None:
        return _with(row, reason=_why_unknown(plan, has_io_nodes=bool(row.io_nodes or row.usual_io_nodes)))
    if io_s is None:
        return _with(row, reason="its I/O time is not known: no log of it is in the history")
    # From the smallest saving to the largest.
    times = [of_nodes * of_stripes for of_nodes, of_stripes in zip(nodes or _SAME, stripes or _SAME, strict=True)]
    low, saved, high = (io_s * (1 - factor) for factor in times)
    return _with(row, low_s=low, saved_s=saved, high_s=high)


def _why_unknown(plan: JobPlan, *, has_io_nodes: bool) -> str:
    """Why the gain of I/O nodes is unknown, or that of stripes on a machine without I/O nodes to share."""
    if has_io_nodes:
        return plan.no_data[0].reason if plan.no_data else "its bandwidth is not known"
    stripes = next((left.reason for left in plan.unchanged if left.name == "stripes"), "they are not known")
    osts = ", on chosen OSTs" if plan.layout is not None and plan.layout.osts else ""
    return f"its stripes stay as they are{osts}: {stripes}"


def _by_io_nodes(row: RehearsedJob, own: Allotment | None, usual: Allotment | None) -> Factors | None:
    """I/O time with the plan's I/O nodes relative to the usual ones: maximum, expected, minimum."""
    if own is None or own.bandwidth is None or usual is None or usual.bandwidth is None:
        return None
    if row.io_nodes == row.usual_io_nodes:
        # With the same I/O nodes nothing changes, however wide the range of their bandwidth.
        return _SAME
    most, expected, least = own.low or own.bandwidth, own.bandwidth, own.high or own.bandwidth
    return usual.bandwidth / most, usual.bandwidth / expected, usual.bandwidth / least


def _by_stripes(plan: JobPlan) -> Factors | None:
    """The same for stripes, if the plan changes them; the range is that of a run's time."""
    io_s, layout = plan.io_s, plan.layout
    if io_s is None or not io_s.before or layout is None or layout.source == "unchanged":
        return None
    return io_s.high / io_s.before, io_s.seconds / io_s.before, io_s.low / io_s.before


def _with(row: RehearsedJob, **values: object) -> RehearsedJob:
    return row.model_copy(update=values)


def summary_of(rows: Iterable[RehearsedJob]) -> list[RehearsedApplication]:
    """Jobs by name, those with the largest savings first."""
    by_name: dict[str, list[RehearsedJob]] = {}
    for row in rows:
        by_name.setdefault(row.name or "", []).append(row)
    return sorted(map(_application, by_name.items()), key=lambda entry: (-entry.saved_s, -entry.jobs, entry.name))


def _application(entry: tuple[str, Sequence[RehearsedJob]]) -> RehearsedApplication:
    name, rows = entry
    known = [row for row in rows if row.saved_s is not None]

    def total(values: Iterator[float | None]) -> float:
        return sum(value for value in values if value is not None)

    return RehearsedApplication(
        name=name,
        jobs=len(rows),
        known=len(known),
        io_s=total(row.io_s for row in known),
        saved_s=total(row.saved_s for row in known),
        low_s=total(row.low_s for row in known),
        high_s=total(row.high_s for row in known),
    )


# A rehearsal as text for people, and its jobs as a table for spreadsheets.

_MAX_ROWS: Final = 20
_LONGEST: Final = 40


def text_of(rehearsal: Rehearsal) -> str:
    """The number of jobs, their savings by name, and why other jobs are not counted."""
    known = sum(row.saved_s is not None for row in rehearsal.jobs)
    lines = [f"{counted(len(rehearsal.jobs), 'job')} ran; the possible saving is known for {known:,}."]
    if known:
        lines.append(_total(rehearsal))
        lines += ["", *_table(rehearsal)]
    if rehearsal.reasons:
        lines += ["", "Not counted:"]
        ordered = sorted(rehearsal.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        lines += [f"  {number:>7,}  {one_line(reason)}" for reason, number in ordered[:_MAX_ROWS]]
        if len(ordered) > _MAX_ROWS:
            lines.append(f"  and {counted(len(ordered) - _MAX_ROWS, 'more reason')}")
    return "\n".join(lines) + "\n"


def _total(rehearsal: Rehearsal) -> str:
    some = rehearsal.applications
    io_s, saved, low, high = (
        sum(values) for values in zip(*((a.io_s, a.saved_s, a.low_s, a.high_s) for a in some), strict=True)
    )
    slower = sum((row.saved_s or 0.0) < 0 for row in rehearsal.jobs)
    share = f"{format_share(saved / io_s)}; " if io_s else ""
    of = f"{_signed(saved)} of their {format_seconds(io_s)} of I/O time"
    text = f"The hook would have saved {of} ({share}{_span(low, high)})."
    return text + (f" {counted(slower, 'job')} would have been slower." if slower else "")


def _span(low: float, high: float) -> str:
    return f"{_signed(low)} to {_signed(high)}"


def _signed(seconds: float) -> str:
    return f"-{format_seconds(-seconds)}" if seconds < 0 else format_seconds(seconds)


def _table(rehearsal: Rehearsal) -> list[str]:
    rows = [("name", "jobs", "counted", "I/O time", "saved", "range")]
    shown = [application for application in rehearsal.applications if application.known][:_MAX_ROWS]
    rows += [
        (
            one_line(entry.name)[:_LONGEST] or "(no name)",
            f"{entry.jobs:,}",
            f"{entry.known:,}",
            format_seconds(entry.io_s),
            _signed(entry.saved_s),
            _span(entry.low_s, entry.high_s),
        )
        for entry in shown
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def csv_of_jobs(rehearsal: Rehearsal) -> str:
    """A row for each job; unknown values are empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    names = list(type(rehearsal.jobs[0]).model_fields)
    out.writerow(names)
    out.writerows([cell(getattr(row, name)) for name in names] for row in rehearsal.jobs)
    return text.getvalue()
