"""Planning of `vani plan job` under the lock: shares the pool among all running jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

import vani
from vani.centre.plan.curves import divisors, offer_of
from vani.centre.plan.forward import forward, with_pattern
from vani.centre.plan.inputs import plan_input
from vani.centre.plan.job_design import Design, design_job
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.pools import Pool, pool_for, pools_of, sharing_settings
from vani.centre.plan.schema.jobs import Jobs, PlannedJob
from vani.centre.plan.schema.plans import (
    Allotment,
    Estimate,
    ForwardPlan,
    ForwardSettings,
    JobPlan,
    Left,
    PlanInput,
    StartedJob,
)
from vani.centre.prolog.state import JobFacts
from vani.errors import InputError
from vani.models.forwarding import Scenario, measured
from vani.schema.host_list import expand
from vani.schema.model import Model
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.prolog.state import State

# Facts about a job before it starts, from a folder of earlier measurements by user and job name.

_LONGEST: Final = 16 << 20
"""Maximum size of a profile in bytes; a prolog has no time for more files."""

_OF_ANY_SCALE: Final = ("bytes", "curve", "profile", "pattern", "demand", "mpi_io", "runs", "unknown")
_OF_THIS_SCALE: Final = ("creations", "io_s", "usual_stripes", "by_stripes", "by_plan", "reads_from", "avoid")

_FILE_NAME: Final = re.compile(r"[^/\x00-\x1f\x7f.][^/\x00-\x1f\x7f]{0,199}")


@dataclass(frozen=True)
class KnownJob:
    """A job as in jobs.yaml, the source of its facts, and what is missing."""

    planned: PlannedJob
    inputs: tuple[PlanInput, ...] = ()
    lacks: tuple[str, ...] = ()


def is_file_name(name: str | None) -> bool:
    """Whether a name that a user chose is a plain file name."""
    return name is not None and _FILE_NAME.fullmatch(name) is not None


def known_file(job: JobFacts, folder: Path | None) -> Path | None:
    """The document about jobs of this name: `USER/NAME.yaml`, or `NAME.yaml`; None if neither exists.

    Users choose job names, so a name that is not a plain file name is not looked up.
    """
    if folder is None or not is_file_name(job.name):
        return None
    folders = [folder]
    if job.user is not None and is_file_name(job.user):
        folders.insert(0, folder / job.user)
    names = (folder / f"{job.name}.yaml" for folder in folders)
    return next((path for path in names if path.is_file()), None)


def known_job(job: JobFacts, path: Path | None) -> KnownJob:
    """Complete a job from a jobs.yaml or from the profile of an earlier run.

    Unusable documents are skipped and reported in `lacks`; the job is still planned.

    Raises
    ------
    InputError
        The job's number of nodes is unknown.
    """
    nodes = job.nodes or len(_hosts_of(job))
    if not nodes:
        raise InputError("its number of nodes and its hosts are unknown", todo="set VANI_JOB_NODES in the prolog")
    plain = PlannedJob(name=job.job, nodes=nodes)
    if path is None:
        return KnownJob(plain, lacks=("jobs of this name are not known",))
    try:
        return _read(plain, path)
    except (InputError, OSError, ValueError) as error:
        return KnownJob(plain, lacks=(f"its known figures cannot be used: {error}",))


def _hosts_of(job: JobFacts) -> list[str]:
    return [] if job.hosts is None else expand(job.hosts)


def _read(plain: PlannedJob, path: Path) -> KnownJob:
    if path.stat().st_size > _LONGEST:
        raise InputError(
            f"is longer than {_LONGEST >> 20} MiB", where=path, todo="write a jobs.yaml with its curve"
        )
    with path.open("rb") as file:
        is_profile = b"vani.profile/" in file.read(4096)
    if is_profile:
        planned = with_pattern(plain.model_copy(update={"profile": path.name}), path.parent)
        return _judged(planned, (plan_input("profile", path),), ())
    known = Jobs.load(path).jobs
    near = min(known, key=lambda job: max(job.nodes / plain.nodes, plain.nodes / job.nodes))
    lacks = []
    if near.nodes != plain.nodes:
        lacks.append(f"its known figures are from {near.nodes:,} nodes, not {plain.nodes:,}")
    processes = None if near.processes is None else max(1, round(near.processes / near.nodes * plain.nodes))
    fields = {key: getattr(near, key) for key in _OF_ANY_SCALE}
    if near.nodes == plain.nodes:
        # How long it takes and which files it creates depend on its scale.
        fields |= {key: getattr(near, key) for key in _OF_THIS_SCALE}
    fields |= {"processes": processes, "curve_nodes": near.curve_nodes or near.nodes}
    planned = with_pattern(plain.model_copy(update=fields), path.parent)
    return _judged(planned, tuple(_inputs(path, planned)), tuple(lacks))


def _inputs(path: Path, job: PlannedJob) -> Iterator[PlanInput]:
    yield plan_input("jobs", path)
    if job.profile is not None:
        yield plan_input("profile", path.parent / job.profile)


def _judged(job: PlannedJob, inputs: tuple[PlanInput, ...], lacks: tuple[str, ...]) -> KnownJob:
    """Drop a curve without a value for this number of nodes: one job must not prevent plans for the others."""
    job = job.model_copy(update={"profile": None})
    try:
        offer_of(job, (), direct=False, estimate="none")
    except InputError as error:
        return KnownJob(job.model_copy(update={"curve": None}), inputs, (*lacks, error.what))
    return KnownJob(job, inputs, lacks)


# Assigns I/O nodes by name to running jobs, given what they have and what the pool has.

Access = Literal["direct", "own", "shared"]


@dataclass(frozen=True)
class Has:
    """Names of the I/O nodes of a job; none for direct access."""

    access: Access
    io_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunningJob:
    """A running job and what it has. `has` is None for a job that is starting."""

    planned: PlannedJob
    has: Has | None = None

    @property
    def number(self) -> str:
        return self.planned.name


@dataclass(frozen=True)
class Shared:
    """The I/O nodes of every job, by job number.

    `unplaced` has the reason for each job that gets none, `over` for each that gets fewer than the policy gives.
    """

    plan: ForwardPlan | None
    has: Mapping[str, Has]
    unplaced: Mapping[str, str] = field(default_factory=dict)
    over: Mapping[str, str] = field(default_factory=dict)

    def allotment(self, number: str) -> Allotment | None:
        """A job's entry in the plan of the pool; None if the plan does not include it."""
        jobs = [] if self.plan is None else self.plan.jobs
        return next((job for job in jobs if job.name == number), None)


def share(
    jobs: Sequence[RunningJob],
    pool: Sequence[str],
    settings: ForwardSettings,
    scenarios: Sequence[Scenario],
    *,
    estimate: Estimate = "near",
) -> Shared:
    """Share the I/O nodes of a pool among running jobs. Each I/O node serves one job, or all jobs that share it.

    A job that started without I/O nodes continues without them, and one that started with them keeps at least one,
    because the access to its files is decided at its start. Jobs keep their present I/O nodes, up to their new number.

    Parameters
    ----------
    pool
        Names of the working I/O nodes, in order of preference.
    """
    settled = {job.number: job.has for job in jobs if job.has is not None and job.has.access == "direct"}
    to_plan = [job for job in jobs if job.number not in settled]
    if not to_plan:
        return Shared(None, settled)
    try:
        plan = forward(
            Jobs(jobs=[job.planned for job in to_plan]),
            settings,
            scenarios=scenarios,
            estimate=estimate,
            current=_present_plan(to_plan),
            forwarded={job.number for job in to_plan if job.has is not None},
        )
    except InputError as error:
        # Running jobs keep what they have, so that a failed plan makes nothing worse.
        still_have = {job.number: _still_there(job.has, pool) for job in to_plan if job.has is not None}
        return Shared(
            None, {**settled, **still_have}, {job.number: str(error) for job in to_plan if job.has is None}
        )
    named, unplaced, over = _named(to_plan, plan, pool, direct=settings.direct)
    return Shared(plan, {**settled, **named}, unplaced, over)


def _still_there(has: Has, pool: Sequence[str]) -> Has:
    return Has(has.access, tuple(node for node in has.io_nodes if node in pool))


def _present_plan(jobs: Sequence[RunningJob]) -> ForwardPlan | None:
    """The jobs' present numbers as a plan, to be changed by the new one."""
    known = [
        Allotment.model_construct(
            name=job.number, io_nodes=len(job.has.io_nodes), shared=job.has.access == "shared"
        )
        for job in jobs
        if job.has is not None
    ]
    return ForwardPlan.model_construct(jobs=known) if known else None


def _named(
    jobs: Sequence[RunningJob], plan: ForwardPlan, pool: Sequence[str], *, direct: bool
) -> tuple[dict[str, Has], dict[str, str], dict[str, str]]:
    """Turn the numbers of a plan into names: first those that jobs keep, then more, in job order."""
    free = dict.fromkeys(pool)
    wanted = {job.name: job for job in plan.jobs}
    access: dict[str, Has] = {}
    unplaced = {left.name: left.reason for left in plan.unplaced}
    over: dict[str, str] = {}
    sharing = [job for job in jobs if wanted[job.number].shared]
    if sharing:
        before = (
            name for job in sharing if job.has and job.has.access == "shared" for name in job.has.io_nodes
        )
        in_use = {name for job in jobs if job.has for name in job.has.io_nodes}
        nodes = (
            *(name for name in before if name in free),
            *(name for name in free if name not in in_use),
            *free,
        )
        node = nodes[0]
        del free[node]
        access = {job.number: Has("shared", (node,)) for job in sharing}
    own = [
        (job, wanted[job.number].io_nodes or 0)
        for job in jobs
        if job.number not in access and job.number not in unplaced
    ]
    retained: dict[str, list[str]] = {}
    for job, number in own:
        had = job.has.io_nodes if job.has is not None and job.has.access == "own" else ()
        retained[job.number] = [name for name in had if name in free][:number]
        for name in retained[job.number]:
            del free[name]
    for job, number in own:
        names = retained[job.number]
        can = _largest_that_fits(job.planned.nodes, number, len(names) + len(free))
        if can < number:
            over[job.number] = f"{number:,} I/O nodes by the policy, but {can:,} are left"
        if not can and not (direct and job.has is None):
            unplaced[job.number] = "no I/O node is left, and it needs one"
            continue
        for name in names[can:]:
            free[name] = None
        more = [name for name, _ in zip(list(free), range(can - len(names)), strict=False)]
        for name in more:
            del free[name]
        access[job.number] = Has("own", (*names[:can], *more)) if can else Has("direct")
    return access, unplaced, over


def _largest_that_fits(nodes: int, wanted: int, there: int) -> int:
    if wanted <= there:
        return wanted
    return max((divisor for divisor in divisors(nodes) if divisor <= there), default=0)


def map_of(hosts: Sequence[str], io_nodes: Sequence[str], numbers: Mapping[str, int]) -> Iterator[str]:
    """Lines of a forwarding map for GekkoFWD, each with a compute node and the number of its I/O node.

    Consecutive compute nodes share an I/O node.

    Parameters
    ----------
    numbers
        Index, from 0, of each I/O node in GekkoFWD's hosts file, by name.
    """
    for place, host in enumerate(hosts):
        yield f"{host} {numbers[io_nodes[place * len(io_nodes) // len(hosts)]]}\n"


# Planning of `vani plan job` under the lock: shares the pool among all running jobs.
#
# Killing a job here leaves a consistent state: all allotments are written in one step, and the next job writes the
# files that are still missing.

_TRIES: Final = 3
"""Number of interrupted attempts after which a document counts as too slow for the budget."""


@dataclass(frozen=True)
class _SharedPool:
    """A pool, and the I/O nodes of each job in it."""

    pool: Pool
    settings: ForwardSettings
    shared: Shared


@dataclass
class _Entry:
    """A running job, what is known about it, and its allotment."""

    facts: JobFacts
    known: KnownJob
    has: Has | None = None
    published: bool = False
    shared: _SharedPool | None = None
    design: Design | None = None


class _SavedJob(Model):
    """A running job as the state keeps it."""

    start_s: float
    planned: PlannedJob
    inputs: tuple[PlanInput, ...] = ()
    lacks: tuple[str, ...] = ()
    has: Has | None = None
    published: bool = False
    design: Design | None = None


def plan_running_jobs(
    state: State, rules: SharingRules, number: str | None, *, now_s: float, say: Callable[[str], None]
) -> str:
    """Share the pool among the running jobs, write the changes, and return one line about job `number`.

    The caller must own the lock of `state`.

    Raises
    ------
    InputError
        There can be no plan, because an input is missing or the state cannot be written.
    """
    pools = pools_of(rules)
    weights = sharing_settings(rules)
    if rules.known is not None and not rules.known.is_dir():
        say(f"--known {rules.known}: no such folder: no job is known")
    saved = state.load(say)
    jobs = state.running(now_s=now_s, expire_s=rules.expire_s, say=say)
    state.sweep(now_s)
    entries = _entries(state, jobs, saved, rules.known, number, say)
    for entry in entries.values():
        planned = entry.known.planned.model_copy(update={"weight": weights.weight_of(entry.facts.qos)})
        entry.known = replace(entry.known, planned=planned)
    _share(entries, pools, rules)
    changed, first = [], []
    for key, entry in entries.items():
        assert entry.shared is not None
        has = entry.shared.shared.has.get(key)
        if entry.has is None and has is not None and entry.design is None:
            # The layout of its files is decided when the job starts.
            entry.design = design_job(
                state,
                entry.known.planned,
                has.io_nodes,
                entry.shared.pool.snapshot,
                [other.design for other in entries.values() if other.design is not None],
                library_path(rules.place_library),
            )
        if has != entry.has or not entry.published:
            if entry.has is None and key != number:
                first.append(key)
            entry.has, entry.published = has, False
            changed.append(key)
    state.commit(_as_json(entries, saved))
    # The job that is starting comes first.
    for key in sorted(changed, key=lambda key: key != number):
        try:
            lack = _publish(state, entries[key], len(entries), rules.place_library)
        except InputError as error:
            if key == number:
                raise
            say(f"job {key}: {error}")
            continue
        if lack is not None:
            say(f"job {key}: {lack}")
        entries[key].published = entries[key].has is not None
    if changed:
        state.commit(_as_json(entries, saved))
    # Their own prologs wait for the lock, and then start no planner.
    for key in first:
        say(f"job {key}: {', '.join(_parts(key, entries))}")
    return _summary(number, entries, [key for key in changed if key != number and key not in first])


def _share(entries: Mapping[str, _Entry], pools: Sequence[Pool], rules: SharingRules) -> None:
    """Share each pool among the jobs that it accepts; a job that no pool accepts gets none."""
    chosen = {key: pool_for(entry.facts, pools) for key, entry in entries.items()}
    for pool in pools:
        own = [entry for key, entry in entries.items() if chosen[key] is pool]
        asking = [RunningJob(entry.known.planned, entry.has) for entry in own]
        wants_curves = any(job.planned.curve is None and job.planned.pattern is not None for job in asking)
        settings = _settings(rules, len(pool.working))
        shared = share(
            asking,
            pool.working,
            settings,
            measured() if wants_curves else (),
            estimate=rules.estimate,
        )
        for entry in own:
            entry.shared = _SharedPool(pool, settings, shared)
    for key, entry in entries.items():
        if chosen[key] is None:
            why = f"no pool accepts a job of {_of(entry.facts)}"
            entry.shared = _SharedPool(Pool((), {}), _settings(rules, 0), Shared(None, {}, {key: why}))


def _of(job: JobFacts) -> str:
    facts = {"partition": job.partition, "account": job.account, "QOS": job.qos}
    return ", ".join(f"{what} {'unknown' if name is None else name}" for what, name in facts.items())


def library_path(path: str | None) -> str | None:
    """The placement library's path in the form that LD_PRELOAD needs.

    Raises
    ------
    InputError
        LD_PRELOAD cannot contain the path.
    """
    if path is None or (path.startswith("/") and path.isprintable() and not set(path) & set(" :\"'`\\$")):
        return path
    raise InputError(
        f"is {path!r}", where="--place-library", todo="give an absolute path without blanks, colons or quotes"
    )


def _settings(rules: SharingRules, io_nodes: int) -> ForwardSettings:
    shared = rules.model_dump(include=set(ForwardSettings.model_fields))
    return ForwardSettings(**shared | {"io_nodes": io_nodes})


def _entries(
    state: State,
    jobs: Sequence[JobFacts],
    saved: dict[str, Any],
    folder: Path | None,
    number: str | None,
    say: Callable[[str], None],
) -> dict[str, _Entry]:
    """Every running job with what is known about it: from the saved state, or looked up now.

    Raises an error for a job that cannot be planned only if it is job `number`.
    """
    before = saved.get("jobs")
    before = before if isinstance(before, dict) else {}
    slow = saved.get("slow")
    saved["slow"] = slow = slow if isinstance(slow, dict) else {}
    entries: dict[str, _Entry] = {}
    for job in jobs:
        try:
            entry = _entry_of(job, before.get(job.job)) or _Entry(
                job, _new_entry(state, job, folder, saved, slow)
            )
        except InputError as error:
            if job.job == number:
                raise
            say(f"job {job.job}: {error}")
            continue
        entries[job.job] = entry
    return entries


def _new_entry(
    state: State, job: JobFacts, folder: Path | None, saved: dict[str, Any], slow: dict[str, Any]
) -> KnownJob:
    path = known_file(job, folder)
    if path is None:
        return known_job(job, None)
    key, tries = str(path), slow.get(str(path), 0)
    if isinstance(tries, int) and tries >= _TRIES:
        plain = known_job(job, None)
        return KnownJob(plain.planned, lacks=(f"{path} exceeds the budget",))
    # The file is recorded before it is read, so that a process killed while reading has already named it.
    slow[key] = (tries if isinstance(tries, int) else 0) + 1
    state.commit(saved)
    looked_up = known_job(job, path)
    del slow[key]
    return looked_up


def _entry_of(job: JobFacts, saved: object) -> _Entry | None:
    """The saved entry of this run of the job; None if there is no usable one."""
    try:
        known = _SavedJob.model_validate(saved)
    except ValidationError:
        return None
    if known.start_s != job.start_s or known.planned.name != job.job:
        return None
    return _Entry(
        job, KnownJob(known.planned, known.inputs, known.lacks), known.has, known.published, design=known.design
    )


def _as_json(entries: Mapping[str, _Entry], saved: Mapping[str, Any]) -> dict[str, Any]:
    jobs = {
        key: _SavedJob(
            start_s=entry.facts.start_s,
            planned=entry.known.planned,
            inputs=entry.known.inputs,
            lacks=entry.known.lacks,
            has=entry.has,
            published=entry.published,
            design=entry.design,
        )
        for key, entry in entries.items()
    }
    return {
        "jobs": {key: job.model_dump(mode="json", by_alias=True, exclude_defaults=True) for key, job in jobs.items()},
        "slow": saved.get("slow", {}),
    }


def _publish(state: State, entry: _Entry, running: int, library: str | None) -> str | None:
    """Write the files of one job: the map, the plan, and finally the variables of its tasks, which name both.

    Returns why a job with I/O nodes has no map; None if it has one or needs none.
    """
    assert entry.shared is not None
    job, has = entry.facts, entry.has
    if not state.has(job.job):
        return None  # The job ended during planning.
    lines, why = _map(entry, entry.shared.pool)
    place = state.file_of(job.job, "map")
    if lines:
        state.write(place, lines.encode())
    else:
        place.unlink(missing_ok=True)
    plan = _plan(entry, entry.shared, running, str(place) if lines else None, why)
    state.write(state.file_of(job.job, "yaml"), plan.to_yaml().encode())
    variables = {
        "VANI_PLAN": str(state.file_of(job.job, "yaml")),
        "VANI_FORWARDING": "none" if has is None else has.access,
        "VANI_IO_NODES": ",".join(has.io_nodes) if has is not None else "",
        "VANI_FORWARDING_MAP": str(place) if lines else "",
        "LIBGKFS_FORWARDING_MAP_FILE": str(place) if lines else "",
        **_layout_variables(entry.design, library),
    }
    text = "".join(f"export {name}={value}\n" for name, value in variables.items() if value)
    state.write(state.file_of(job.job, "env"), text.encode())
    return why


def _layout_variables(design: Design | None, library: str | None) -> dict[str, str]:
    layout = None if design is None else design.layout
    if layout is None:
        return {}
    by_name = {"VANI_PLACE_DB": layout.database, "LD_PRELOAD": library} if layout.database else {}
    return {name: value or "" for name, value in {**by_name, "ROMIO_HINTS": layout.hints}.items()}


def _map(entry: _Entry, pool: Pool) -> tuple[str, str | None]:
    """The forwarding map, empty if there is none, and then the reason."""
    if entry.has is None or not entry.has.io_nodes:
        return "", None
    try:
        hosts = expand(entry.facts.hosts or "")
    except InputError as error:
        return "", f"no forwarding map: its list of hosts {error}"
    return "".join(map_of(hosts, entry.has.io_nodes, pool.numbers)), None


def _plan(entry: _Entry, of: _SharedPool, running: int, place: str | None, why: str | None) -> JobPlan:
    job, shared = entry.facts, of.shared
    whole = shared.plan
    lacks = [*entry.known.lacks, *([why] if why else [])]
    design = entry.design or Design()
    lacks += [left.reason for left in ([] if whole is None else whole.no_data) if left.name == job.job]

    def left(reasons: Mapping[str, str]) -> list[Left]:
        return [Left(name=job.job, reason=reasons[job.job])] if job.job in reasons else []

    return JobPlan(
        version=vani.__version__,
        inputs=[*entry.known.inputs, *of.pool.inputs],
        job=StartedJob(
            id=job.job,
            start=job.start_s,
            nodes=entry.known.planned.nodes,
            **{name: getattr(job, name) for name in ("array", "name", "user", "account", "qos", "partition", "hosts")},
        ),
        pool=of.pool.name,
        weight=entry.known.planned.weight,
        forward=of.settings,
        running=running,
        access=None if entry.has is None else entry.has.access,
        io_nodes=[] if entry.has is None else list(entry.has.io_nodes),
        allotment=shared.allotment(job.job),
        map=place,
        layout=design.layout,
        path=design.path,
        io_s=design.io_s,
        unchanged=list(design.unchanged),
        expected=None,
        unplaced=left(shared.unplaced),
        over_capacity=left(shared.over),
        no_data=[Left(name=job.job, reason=lack) for lack in lacks],
        notes=[] if whole is None else list(whole.notes),
    )


def _summary(number: str | None, entries: Mapping[str, _Entry], others: Sequence[str]) -> str:
    parts = list(_parts(number, entries))
    parts.append(f"{counted(len(entries), 'job')} running")
    if others:
        parts.append(f"new plans for {len(others):,} of the others")
    return ", ".join(parts)


def _parts(number: str | None, entries: Mapping[str, _Entry]) -> Iterator[str]:
    if number is None:
        return
    entry = entries.get(number)
    if entry is None or entry.shared is None:
        yield "it ended during planning"
        return
    pool, shared = entry.shared.pool, entry.shared.shared
    if entry.has is None:
        yield f"no I/O nodes ({shared.unplaced.get(number, 'no plan')})"
    elif entry.has.access == "direct":
        yield "direct access"
    else:
        way = "shares" if entry.has.access == "shared" else "gets"
        of = "" if pool.name is None else f" of pool {pool.name}"
        yield f"{way} {len(entry.has.io_nodes):,} of {counted(len(pool.working), 'I/O node')}{of}"
    layout = None if entry is None or entry.design is None else entry.design.layout
    if layout is not None:
        on_osts = f" on {counted(len(layout.osts), 'OST')}" if layout.osts else ""
        yield counted(layout.stripe_count, "stripe") + on_osts
