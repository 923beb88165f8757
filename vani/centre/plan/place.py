"""Plans that choose OSTs for new files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import vani
from vani.centre.columns import Floats
from vani.centre.plan import inputs as documents
from vani.centre.plan import placement_times as times
from vani.centre.plan.placement.layouts import Extent, setstripe
from vani.centre.plan.placement.search import Stripes, Targets, least_level, renumbered
from vani.centre.plan.placement_methods import Chosen, Method, Pool, choose
from vani.centre.plan.schema import plans
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.snapshot import Snapshot, Target
from vani.centre.plan.simulate.jobs import extents_of_plan
from vani.centre.plan.simulate.machine import turns_of
from vani.errors import InputError
from vani.schema.advice import Expected
from vani.schema.settings import PathLike
from vani.units import counted, format_bytes, format_number, format_rate, format_share

if TYPE_CHECKING:
    from vani.models.pfl import Layout

# A plan that places the stripes of future files on OSTs, from jobs and a snapshot of the machine (Tarazu).

_MAX_WAVES: Final = 16
"""Most waves that are spread over OSTs one by one."""
_ALIKE: Final = 0.01
"""Placements count as equally fast within about this share of their time."""


@dataclass(frozen=True)
class _Request:
    """An extent that gets OSTs, the index of its file in the plan, and the wave in which it is written.

    A wave is the place of the file among those of its process, and the number of the component.
    """

    file: int
    extent: Extent
    wave: tuple[int, int]


def place(
    jobs: Jobs,
    snapshot: Snapshot,
    settings: plans.PlaceSettings,
    *,
    layouts: Mapping[str, Layout] | None = None,
    inputs: Sequence[plans.PlanInput] = (),
    where: str = "jobs",
    where_snapshot: str = "snapshot",
) -> plans.PlacePlan:
    """Choose OSTs for every extent of every file that the jobs will create.

    Parameters
    ----------
    layouts
        Layouts from Tarazu's .ini files, by their name in the jobs document.
    where, where_snapshot
        Names of the documents in errors.

    Raises
    ------
    InputError
        A document contradicts itself, there are no files or no OST in service, or Lustre refuses a layout.
    """
    jobs.refuse_twins(where)
    snapshot.refuse_contradictions(where_snapshot)
    snapshot = snapshot.model_copy(update={"ost": sorted(snapshot.ost, key=lambda target: target.index)})
    targets = [target for target in snapshot.ost if target.state != "offline"]
    if not targets:
        raise InputError("has no usable OST", where=where_snapshot, todo="list OSTs under `ost` that are not offline")
    pool, no_data = _pool(targets, snapshot, settings)
    files = documents.files_to_place(
        jobs,
        layouts or {},
        int(pool.is_sound.sum()) or len(pool.index),
        where,
        as_printed=settings.method == "tarazu",
        most=len(pool.index),
    )
    requests = _requests(files)
    trials = times.Trials.of(jobs, files, snapshot, pool.targets, settings)
    pool = replace(pool, pace=times.paces_of(trials.machine))
    chosen = _chosen(files, requests, trials, pool, settings)
    stripes = [request.extent.stripes for request in requests]
    placed = _placed(files, requests, chosen, pool)
    added = _added_bytes(stripes, chosen, len(pool.index))
    counts = pool.is_sound | (added > 0)
    part, load = pool.part(counts), (pool.targets.base + added)[counts]
    whole = [file for file, row in zip(files, placed, strict=True) if not any(extent.is_left for extent in row.extents)]
    if len(whole) < len(files):
        trials = times.Trials.of(jobs, whole, snapshot, pool.targets, settings)
    extents = extents_of_plan(placed, {job.name for job in jobs.jobs})

    def costs(tried: times.Trials) -> plans.OstCosts:
        seconds = tried.seconds(extents) if whole else None
        return times.costs_of(load, part.targets, None if seconds is None else seconds / tried.ideal_s)

    after = costs(trials)
    has_bytes = any(any(extent.bytes) for row in placed for extent in row.extents)
    ranges = [trials.range_of(rule) for rule in times.RULES] if has_bytes else []
    before = ranges[0] if ranges else None
    least = _least(stripes, chosen, part.targets)
    mean = float(load.sum() / part.targets.size.sum())
    cost = None if least is None or mean <= 0 else max(1.0, least / mean)
    is_least = least is not None and (chosen.is_least or after.fullest <= least * (1 + 1e-9))
    pin, why = times.pinning(after, ranges, settings)
    for rate in times.OTHER_RATES if pin and not times.has_rates(snapshot) else ():
        others = times.Trials.of(jobs, whole, snapshot, pool.targets, settings, rate)
        if not times.pinning(costs(others), [others.range_of(rule) for rule in times.RULES[:2]], settings)[0]:
            pin, why = False, f"{why}; not so with targets of {format_rate(rate)}, and the snapshot lacks their rates"
    return plans.PlacePlan(
        version=vani.__version__,
        inputs=list(inputs),
        place=settings,
        now=times.costs_of(pool.targets.base, pool.targets) if np.any(pool.targets.base > 0) else None,
        before=before,
        after=after,
        expected=_expected(before, after, trials.ideal_s),
        least=cost,
        is_least=is_least,
        pin=pin,
        pin_reason=why,
        answers=times.answers_to(whole, trials, pool, ranges, settings),
        allocator=ranges,
        targets=_uses(snapshot, pool, added),
        files=[_with_command(file, row, pin=pin) for file, row in zip(files, placed, strict=True)],
        unplaced=list(_unplaced(files, requests, chosen, pool, settings)),
        over_capacity=list(_over(snapshot, pool, added, settings)),
        no_data=no_data + [plans.Left(name=file.creation.path, reason=file.lack) for file in files if file.lack],
        notes=times.notes_of(files, snapshot, settings, pool, added, after, before, is_least=is_least),
    )


def _requests(files: Sequence[documents.FileToPlace]) -> list[_Request]:
    """The extents that get OSTs, in the order in which they are written: a wave after the other."""
    turns: dict[int, int] = {}
    for job in dict.fromkeys(file.job for file in files):
        own = [number for number, file in enumerate(files) if file.job == job]
        turns |= zip(own, turns_of(files[number].creation.rank for number in own), strict=True)
    requests = [
        _Request(number, extent, (turns[number], extent.number))
        for number, file in enumerate(files)
        for extent in file.extents
        if extent.why_free is None and extent.on_mdt is None
    ]
    return sorted(requests, key=lambda request: request.wave)


def _chosen(
    files: Sequence[documents.FileToPlace], requests: Sequence[_Request], trials: times.Trials, pool: Pool,
    settings: plans.PlaceSettings,
) -> Chosen:
    """OSTs of each request. An extent with a stripe that has no OST gets none: no command can set it."""
    stripes = [request.extent.stripes for request in requests]
    largest = max((request.extent.size for request in requests), default=1)
    number = {wave: n for n, wave in enumerate(sorted({request.wave for request in requests}))}
    waves = [number[request.wave] for request in requests]
    names = {file.job for file in files}

    def whole(flow: Chosen) -> Chosen:
        rows = [row if len(row) == len(sizes) else [] for row, sizes in zip(flow.of, stripes, strict=True)]
        return Chosen(rows, flow.is_least)

    if settings.method == "lsa":
        drawn, position = trials.drawn_by_lustre(), {int(index): n for n, index in enumerate(pool.index.tolist())}
        places = [(files[request.file], request.extent.number) for request in requests]
        lists = [drawn.get((file.job, file.creation.path, number), ()) for file, number in places]
        return whole(Chosen([[position[ost] for ost in osts] for osts in lists], is_least=False))
    if settings.method != "fast":
        return whole(choose(stripes, waves, largest, pool, settings.method))
    methods: list[Method] = ["balanced", "turn"]
    if len(number) <= _MAX_WAVES:
        methods += ["total", "waves"]
    flows = [whole(choose(stripes, waves, largest, pool, method)) for method in methods]
    if not trials.is_timed:
        return flows[-1]

    def worth(flow: Chosen) -> tuple[int, float, float]:
        seconds = trials.seconds(extents_of_plan(_placed(files, requests, flow, pool), names))
        added = _added_bytes(stripes, flow, len(pool.index))
        fullest = float(((pool.targets.base + added) / pool.targets.size).max(initial=0.0))
        time = math.inf if seconds is None else round(math.log(max(seconds, 1e-12)) / _ALIKE)
        return sum(not row for row in flow.of), time, fullest

    return min(flows, key=worth)


def _pool(
    targets: Sequence[Target], snapshot: Snapshot, settings: plans.PlaceSettings
) -> tuple[Pool, list[plans.Left]]:
    size = np.array([target.size for target in targets], dtype=np.float64)
    used = np.array([target.used for target in targets], dtype=np.float64)
    names = {server.name: number for number, server in enumerate(snapshot.oss)}
    server = np.array([names.get(target.oss or "", -1) for target in targets], dtype=np.int64)
    # Only the method tarazu uses the loads of servers, and it reports missing ones.
    no_data = [
        plans.Left(name=left.name, reason=left.reason) for left in snapshot.no_data if left.name.startswith("OST ")
    ]
    named = {left.name for left in no_data}
    no_data += [
        plans.Left(name=f"OST {target.index}", reason="its server is not known: OSS Cost is not computed")
        for target in targets
        if target.oss is None and f"OST {target.index}" not in named
    ]
    loads = np.zeros(len(targets))
    if settings.method == "tarazu":
        loads, lacks = _server_loads(snapshot, server, settings)
        no_data += lacks
    room = np.maximum(np.floor(settings.ceiling * size) - used, 0)
    columns = Targets(size, settings.past_weight * used, room, renumbered(server))
    index = np.array([target.index for target in targets], dtype=np.int64)
    sound = np.array([target.state == "ok" for target in targets], dtype=bool)
    return Pool(index, sound, columns, loads, used / size, np.ones(len(size))), no_data


def _server_loads(
    snapshot: Snapshot, server: np.ndarray, settings: plans.PlaceSettings
) -> tuple[Floats, list[plans.Left]]:
    """Load of each target's server, shape (targets,). The mean of the others replaces a missing figure."""
    loads = np.zeros(len(server))
    lacks: list[plans.Left] = []
    used = set(server.tolist()) - {-1}
    for name, weight in (("cpu", settings.cpu_weight), ("memory", settings.memory_weight)):
        if not weight:
            continue
        known = {number: getattr(server, name) for number, server in enumerate(snapshot.oss) if number in used}
        figures = [value for value in known.values() if value is not None]
        if not figures:
            reason = f"no {name} figure is known: the load is computed without it"
            lacks.append(plans.Left(name="servers", reason=reason))
            continue
        mean = sum(figures) / len(figures)
        reason = f"no {name} figure: the mean of the others, {format_number(mean, 2)}"
        unknown = [snapshot.oss[number].name for number, value in known.items() if value is None]
        lacks += [plans.Left(name=server_name, reason=reason) for server_name in unknown]
        values = [mean if known.get(number) is None else known[number] for number in server.tolist()]
        loads += weight * np.array(values, dtype=np.float64)
    return loads, lacks


def _added_bytes(stripes: Sequence[Sequence[int]], chosen: Chosen, targets: int) -> Floats:
    """Bytes that the plan adds to each target, shape (targets,)."""
    where = [target for row in chosen.of for target in row]
    what = [size for row, sizes in zip(chosen.of, stripes, strict=True) if row for size in sizes]
    added = np.zeros(targets)
    np.add.at(added, np.array(where, dtype=np.int64), np.array(what, dtype=np.float64))
    return added


def _least(stripes: Sequence[Sequence[int]], chosen: Chosen, targets: Targets) -> float | None:
    """Lower bound of the fullest target's level in any placement of the placed extents; None without bytes."""
    placed = [sizes for row, sizes in zip(chosen.of, stripes, strict=True) if row]
    if not any(map(any, placed)):
        return None
    # The room limits this plan only; the bound must also cover placements that exceed it.
    free = Targets(targets.size, targets.base, targets.size * 1e9, targets.server)
    return least_level(Stripes.of(placed), free)


def _expected(before: plans.AllocatorRange | None, after: plans.OstCosts, ideal_s: float) -> Expected | None:
    if before is None or before.time_cost is None or not after.time_cost:
        return None
    drawn = before.time_cost
    low, middle, high = (end / after.time_cost for end in (drawn.low, drawn.median, drawn.high))
    return plans.expected_effect(
        "makespan_s", drawn.median * ideal_s, after.time_cost * ideal_s,
        "simulated end of the last file; before: Lustre's allocator as configured, median of draws; low and high: "
        "their minimum and maximum",
        speedup=middle, ends=(low, high),
    )  # fmt: skip


def _uses(snapshot: Snapshot, pool: Pool, added_bytes: Floats) -> list[plans.TargetUse]:
    added = {int(index): round(size) for index, size in zip(pool.index, added_bytes.tolist(), strict=True)}
    return [
        plans.TargetUse(
            index=target.index,
            oss=target.oss,
            state=target.state,
            used=target.used,
            added=added.get(target.index, 0),
            share=(target.used + added.get(target.index, 0)) / target.size,
        )
        for target in sorted(snapshot.ost, key=lambda target: target.index)
    ]


def _placed(
    files: Sequence[documents.FileToPlace], requests: Sequence[_Request], chosen: Chosen, pool: Pool
) -> list[plans.PlacedFile]:
    index = pool.index.tolist()
    osts: list[dict[int, list[int]]] = [{} for _ in files]
    for request, row in zip(requests, chosen.of, strict=True):
        osts[request.file][request.extent.number] = [index[position] for position in row]
    return [
        plans.PlacedFile(
            path=file.creation.path,
            job=file.job,
            rank=file.creation.rank,
            size=file.creation.size,
            extents=[_extent(extent, of_file.get(extent.number, [])) for extent in file.extents],
            command=None,
        )
        for file, of_file in zip(files, osts, strict=True)
    ]


def _with_command(file: documents.FileToPlace, placed: plans.PlacedFile, *, pin: bool) -> plans.PlacedFile:
    """The file with its command, which names OSTs only if that is worth it; none if Lustre chooses everything."""
    osts = {extent.number: extent.osts for extent in placed.extents if extent.osts}
    if not osts:
        return placed
    sizes = {extent.number: extent.settable for extent in file.extents}
    command = setstripe(file.creation.path, file.layout, sizes, osts if pin else {})
    return placed.model_copy(update={"command": command})


def _extent(extent: Extent, osts: list[int]) -> plans.PlacedExtent:
    return plans.PlacedExtent(
        number=extent.number,
        start=extent.start,
        end=extent.end,
        stripe_count=extent.count,
        stripe_size=extent.size,
        set_stripe_size=extent.settable,
        osts=osts,
        bytes=list(extent.stripes) if osts else [],
        size_for=extent.purpose,
        on_mdt=extent.on_mdt,
    )


def _unplaced(
    files: Sequence[documents.FileToPlace], requests: Sequence[_Request], chosen: Chosen, pool: Pool,
    settings: plans.PlaceSettings,
) -> Iterator[plans.Left]:
    for file in files:
        for extent in file.extents:
            if extent.why_free is not None:
                yield plans.Left(name=_name(file, extent), reason=f"{extent.why_free}; Lustre chooses")
    for request, row in zip(requests, chosen.of, strict=True):
        extent, count = request.extent, len(pool.index)
        if len(row) == extent.count:
            continue
        if extent.count > count:
            serve = "serves" if count == 1 else "serve"
            why = f"needs {counted(extent.count, 'OST')}, but only {count:,} {serve}"
        elif settings.method == "tarazu":
            why = (
                f"no OST for {extent.count - len(row):,} of {counted(extent.count, 'stripe')}: no "
                f"room for more stripes of the largest size below {format_share(settings.ceiling)}"
            )
        else:
            why = (
                f"below {format_share(settings.ceiling)} there is no room for "
                f"{counted(extent.count, 'stripe')} of {format_bytes(max(extent.stripes))} on as many OSTs"
            )
        yield plans.Left(name=_name(files[request.file], extent), reason=f"{why}; Lustre chooses")


def _over(snapshot: Snapshot, pool: Pool, added_bytes: Floats, settings: plans.PlaceSettings) -> Iterator[plans.Left]:
    """OSTs that this plan fills above the ceiling, which only Lustre's own allocator does."""
    size = {target.index: target for target in snapshot.ost}
    for at in np.flatnonzero(added_bytes > pool.targets.room).tolist():
        index = int(pool.index[at])
        full = format_share((size[index].used + float(added_bytes[at])) / size[index].size)
        yield plans.Left(name=f"OST {index}", reason=f"filled to {full}, above {format_share(settings.ceiling)}")


def _name(file: documents.FileToPlace, extent: Extent) -> str:
    whole = len(file.layout.components) == 1
    return file.creation.path if whole else f"{file.creation.path}, extent {extent.number}"


# Implements `vani plan place`.

def plan_place(
    jobs: PathLike | Jobs,
    snapshot: PathLike | Snapshot,
    settings: plans.PlaceSettings | None = None,
    *,
    max_age: float | None = None,
    now: datetime | None = None,
    **fields: Any,
) -> plans.PlacePlan:
    """Choose OSTs for the files that jobs will create.

    Parameters
    ----------
    jobs, snapshot
        A jobs.yaml and a snapshot.yaml, or the documents themselves.
    settings, fields
        How OSTs are chosen, or single fields of `PlaceSettings`, such as `ceiling`.
    max_age, now
        Maximum age of the snapshot in seconds at the time `now`; None: any age, the current time.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, the snapshot is too old, or no OST is in service.
    """
    settings = plans.PlaceSettings.of(settings, **fields)
    given_jobs = documents.loaded("jobs", jobs, Jobs)
    state = documents.loaded_snapshot(snapshot, max_age, now)
    files = documents.layout_files_of(given_jobs.document, given_jobs.folder)
    layouts = [documents.plan_input("layout", path) for path in dict.fromkeys(files.values())]
    return place(
        given_jobs.document,
        state.document,
        settings,
        layouts=documents.read_layouts(files),
        inputs=[given_jobs.source, state.source, *layouts],
        where=given_jobs.where,
        where_snapshot=state.where,
    )

