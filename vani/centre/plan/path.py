"""Paths for the I/O of jobs through forwarding nodes, storage nodes and OSTs (AIOT, IPDPS 2022)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

import vani
from vani.centre.columns import Floats, Ints
from vani.centre.plan import path_layers
from vani.centre.plan.inputs import loaded, loaded_snapshot, plan_input
from vani.centre.plan.job_io import JobIo, io_of
from vani.centre.plan.path_mapping import Settings, best_mapping, lines_of, settings_of
from vani.centre.plan.schema import plans
from vani.centre.plan.schema.jobs import Jobs, PlannedJob
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError
from vani.schema.advice import Expected
from vani.schema.host_list import HostList, first_twin
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.units import format_share

# Paths of each job's I/O through forwarding nodes, storage nodes and targets, from jobs and a snapshot (AIOT).
#
# Jobs are served one after another, each from what the earlier ones left. For each job: compute the flow of its demand
# through the layers (Algorithm 1, or a maximum flow), assign each compute node to one forwarding node, compute the flow
# again within that assignment, and choose the settings that fit the path.

_WHOLE: Final = 1 - 1e-6
"""Least share of a demand at which it counts as met."""


@dataclass
class _Served:
    """The path of one job, before its settings."""

    job: PlannedJob
    io: JobIo
    binds: plans.Dimension | None = None
    flow: float | None = None
    bound: float | None = None
    flows: path_layers.Flows = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)
    why: str | None = None

    @property
    def met(self) -> float | None:
        return None if self.flow is None else path_layers.carried(self.flows)


def path(
    jobs: Jobs,
    snapshot: Snapshot,
    settings: plans.PathSettings,
    *,
    profiles: Mapping[str, Profile] | None = None,
    inputs: Sequence[plans.PlanInput] = (),
    where: str = "jobs",
    where_snapshot: str = "snapshot",
) -> plans.PathPlan:
    """Give each job a path.

    Parameters
    ----------
    profiles
        Profiles of earlier runs, by job name.
    where, where_snapshot
        Names of the documents in errors.

    Raises
    ------
    InputError
        Two jobs have the same name or share a host, a job's list of hosts does not match its number of nodes, or the
        machine has no path.
    """
    jobs.refuse_twins(where)
    hosts = _hosts(jobs, where)
    known = profiles or {}
    ios = [io_of(job, known.get(job.name)) for job in jobs.jobs]
    network = path_layers.network_of(snapshot, _demanded(ios, settings), where_snapshot)
    before, loads_before = _balance(network), network.loads()
    served: dict[int, _Served] = {}
    for number in sorted(range(len(ios)), key=lambda n: jobs.jobs[n].submit_s):
        served[number] = _serve(jobs.jobs[number], ios[number], network, settings)
    done = [served[number] for number in range(len(ios))]
    users = Counter(fwd for route in done for fwd in route.nodes)
    buffers = [node.prefetch_buffer for node in snapshot.forwarding]
    chosen = [
        settings_of(
            route.io,
            route.job.nodes,
            list(route.nodes),
            network=network,
            buffers=buffers,
            users=users,
            metadata_share=settings.metadata_share,
            mds=snapshot.mds,
        )
        if route.nodes
        else Settings()
        for route in done
    ]
    left = [(route, plans.Left(name=route.job.name, reason=route.why)) for route in done if route.why is not None]
    return plans.PathPlan(
        version=vani.__version__,
        inputs=list(inputs),
        expected=_expected(done, network.forwarding, [node.state != "offline" for node in snapshot.forwarding]),
        unplaced=[why for route, why in left if not route.nodes],
        over_capacity=[
            *(why for route, why in left if route.nodes),
            *(over for layer in network.layers for over in _over(layer)),
        ],
        no_data=[
            *(plans.Left(name=route.job.name, reason=why) for route in done if (why := _lacks(route, settings))),
            *network.lacks,
        ],
        notes=_notes(ios, settings),
        path=settings,
        before=before,
        after=_balance(network),
        jobs=[_row(*of_job, network) for of_job in zip(done, chosen, hosts, strict=True)],
        layers=list(map(_layer_loads, network.layers, loads_before, network.loads())),
    )


def _serve(job: PlannedJob, io: JobIo, network: path_layers.Network, settings: plans.PathSettings) -> _Served:
    """Choose the path of one job and subtract its load from the network."""
    demand = np.array([rate or 0.0 for rate in io.demand])
    limited = demand * (np.arange(len(demand)) == 0) if settings.capacity == "eq1" else demand
    keys = network.forwarding.keys(network.loads()[0])
    queue = np.argsort(keys, kind="stable")
    served = _Served(job, io)
    if all(rate is None for rate in io.demand) or (settings.capacity == "eq1" and not io.demand[0]):
        room = path_layers.room_for(network, np.zeros_like(demand))
        flows = path_layers.largest(network, room, demand * 0, exact=False, pack=True)
        if flows:
            served.nodes = {flows[0][0]: job.nodes}
            network.forwarding.to_the_back([flows[0][0]])
        else:
            served.why = "no forwarding node that can be used leads to an OST that can"
        return served
    room = path_layers.room_for(network, limited)
    served.binds = _binds(network.forwarding, limited)
    flows = path_layers.largest(network, room, limited, exact=settings.exact, pack=settings.pack)
    served.flow = path_layers.carried(flows)
    if not flows:
        served.why = _why(network, room, 0.0)
        return served
    order = _reachable(queue, network, room)
    served.nodes, served.flows, served.bound = best_mapping(
        flows, room, order, job.nodes, network=network, demand=limited, pack=settings.pack
    )
    # With limited reach, Algorithm 1 may carry less than the mapping does.
    served.flow = max(served.flow, path_layers.carried(served.flows))
    network.carry(demand, served.flows)
    if path_layers.carried(served.flows) < _WHOLE:
        served.why = _why(network, room, served.flow, path_layers.carried(served.flows))
    return served


def _reachable(queue: Ints, network: path_layers.Network, room: path_layers.Room) -> Ints:
    """Forwarding nodes that lead to storage with room, in queue order."""
    leads = np.array([bool((room.storage[reached] > path_layers.DUST).any()) for reached in network.reach])
    return np.asarray(queue[leads[network.groups[queue]]], dtype=np.int64)


def _demanded(ios: Sequence[JobIo], settings: plans.PathSettings) -> set[plans.Dimension]:
    """Dimensions in which peaks matter: those in which any job has a demand."""
    if settings.capacity == "eq1":
        return {"iobw"}
    return {name for n, name in enumerate(path_layers.DIMENSIONS) if any(io.demand[n] for io in ios)}


def _expected(done: Sequence[_Served], layer: path_layers.Layer, serves: Sequence[bool]) -> Expected | None:
    """Share of the demand that the plan carries, compared with a static map; None if no job has a demand."""
    with_demand = [number for number, route in enumerate(done) if route.met is not None]
    if not with_demand:
        return None
    demands = np.array([[rate or 0.0 for rate in route.io.demand] for route in done])
    nodes = [route.job.nodes for route in done]
    before = float(path_layers.static_shares(layer, nodes, demands, serves)[with_demand].mean())
    after = float(np.mean([done[number].met for number in with_demand]))
    return plans.expected_effect(
        "mean_share_of_demand_carried", before, after,
        "before: compute nodes dealt to all forwarding nodes in blocks, in the order of jobs.yaml, and storage without "
        "a limit; after: this plan; no range: demands and loads have no scatter",
    )  # fmt: skip


def _lacks(route: _Served, settings: plans.PathSettings) -> str | None:
    if settings.capacity == "eq1" and not route.io.demand[0] and any(route.io.demand):
        return "it moves no bytes, and equation 1 counts only bytes: it gets no capacity"
    return route.io.lacks


def _binds(layer: path_layers.Layer, demand: Floats) -> plans.Dimension | None:
    room = np.where(layer.usable[:, None], layer.room, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        taken = np.where((demand > 0) & np.isfinite(room), demand / room, 0.0)
    return path_layers.DIMENSIONS[int(taken.argmax())] if taken.any() else None


def _why(network: path_layers.Network, room: path_layers.Room, flow: float, met: float | None = None) -> str:
    """A sentence on why the plan does not carry all of a demand."""
    forwarding, behind = room.least_sum(network)
    share = format_share(flow if met is None else met)
    text = f"{share} of its demand is carried" if flow else "none of its demand is carried"
    none = 1e-4
    # If nothing is carried although a layer has room, that room is out of reach.
    if (least := min(forwarding, behind)) < _WHOLE and (flow or least <= none):
        layer = "forwarding nodes" if forwarding <= behind else "storage nodes and their OSTs"
        return f"{text}: {layer} have room for {format_share(least) if least > none else 'none of it'}"
    if flow < _WHOLE:
        return f"{text}: the storage nodes that forwarding nodes with room reach are full"
    return f"{text}: no forwarding node has enough room for one of its compute nodes"


def _hosts(jobs: Jobs, where: str) -> list[HostList | None]:
    lists = [None if job.hosts is None else HostList.parse(job.hosts) for job in jobs.jobs]
    for job, own in zip(jobs.jobs, lists, strict=True):
        if own is not None and len(own) != job.nodes:
            what = f"its `hosts` are {len(own):,}, its `nodes` {job.nodes:,}"
            raise InputError(what, where=f"{where}: job {job.name}", todo="make the two numbers equal")
    twin = first_twin((span, number) for number, own in enumerate(lists) if own is not None for span in own.ranges)
    if twin is not None:
        name, first, second = twin
        what = f"host {name!r} is in the jobs {jobs.jobs[first].name!r} and {jobs.jobs[second].name!r}"
        raise InputError(what, where=where, todo="give each host to one job: it has one forwarding node")
    return lists


def _row(route: _Served, settings: Settings, hosts: HostList | None, network: path_layers.Network) -> plans.JobPath:
    names = tuple(layer.names for layer in network.layers)
    rates: dict[str, Any] = dict(zip(path_layers.DIMENSIONS, route.io.demand, strict=True))
    return plans.JobPath(
        name=route.job.name,
        nodes=route.job.nodes,
        **rates,
        binds=route.binds,
        flow=route.flow,
        met=route.met,
        bound=route.bound,
        flows=[
            plans.Flow(
                forwarding=names[0][fwd], storage=names[1][node], ost=int(names[2][target]), share=min(1.0, share)
            )
            for fwd, node, target, share in route.flows
        ],
        map=_mapped(route.nodes, hosts, names[0]),
        lines=lines_of(settings, route.job),
        kept=settings.unchanged,
        **{name: value for name, value in vars(settings).items() if name != "unchanged"},
    )


def _mapped(nodes: Mapping[int, int], hosts: HostList | None, names: Sequence[str]) -> list[plans.MappedNodes]:
    mapped, first = [], 0
    for fwd, count in nodes.items():
        mapped.append(
            plans.MappedNodes(
                forwarding=names[fwd],
                number=fwd,
                first=first,
                nodes=count,
                hosts=None if hosts is None else str(hosts.part(first, first + count)),
            )
        )
        first += count
    return mapped


def _balance(network: path_layers.Network) -> plans.Balance:
    pairs = zip(network.layers, network.loads(), strict=True)
    return plans.Balance(**{layer.name: layer.index(load) for layer, load in pairs})


def _layer_loads(layer: path_layers.Layer, before: Floats, after: Floats) -> plans.LayerLoads:
    usable = layer.usable
    knows = layer.knows_loads and bool(usable.any())
    busy = np.flatnonzero(layer.used.any(axis=1))
    return plans.LayerLoads(
        layer=layer.name,
        nodes=int(usable.sum()),
        unused=int((~usable).sum()),
        largest_before=float(before[usable].max()) if knows else None,
        largest_after=float(after[usable].max()) if knows else None,
        loads=[plans.NodeLoad(name=layer.names[n], before=float(before[n]), after=float(after[n])) for n in busy],
    )


def _over(layer: path_layers.Layer) -> list[plans.Left]:
    """Nodes that carry more than they can, which only a plan by equation 1 allows."""
    free = layer.free
    over = np.isfinite(free) & (layer.used > free * (1 + path_layers.DUST) + path_layers.DUST)
    return [
        plans.Left(
            name=layer.names[n] if layer.name != "ost" else f"OST {layer.names[n]}",
            reason=f"{layer.used[n, d]:,.0f} {path_layers.DIMENSIONS[d]} where {free[n, d]:,.0f} are free: equation 1 "
            "does not count them",
        )
        for n, d in np.argwhere(over)
    ]


def _notes(ios: Sequence[JobIo], settings: plans.PathSettings) -> list[str]:
    notes = []
    if settings.capacity == "eq1":
        notes.append(
            "equation 1 as printed, with x1 Y1 = x2 Y2 = x3 Y3 at each node and x1 = 0.1, is 0.3 Y1 (1 - U): it "
            "does not depend on data or metadata operations"
        )
    stand_in = [io.notes for io in ios if io.notes is not None]
    if stand_in:
        more = [f"and of {len(stand_in) - 3:,} more"] if stand_in[3:] else []
        notes.append("; ".join([*stand_in[:3], *more]))
    return notes


# Implements `vani plan path`.

def plan_path(
    jobs: PathLike | Jobs,
    snapshot: PathLike | Snapshot,
    settings: plans.PathSettings | None = None,
    *,
    max_age: float | None = None,
    now: datetime | None = None,
    **fields: Any,
) -> plans.PathPlan:
    """Give each job's I/O a path through forwarding nodes, storage nodes and targets.

    Parameters
    ----------
    jobs, snapshot
        A jobs.yaml and a snapshot.yaml, or the documents themselves.
    settings, fields
        How paths are chosen, or single fields of `PathSettings`.
    max_age, now
        Maximum age of the snapshot in seconds at the time `now`; None: any age, the current time.

    Raises
    ------
    InputError
        A document cannot be used, or a figure is invalid.
    """
    settings = plans.PathSettings.of(settings, **fields)
    given_jobs = loaded("jobs", jobs, Jobs)
    state = loaded_snapshot(snapshot, max_age, now)
    if state.document is snapshot:
        state.document.refuse_contradictions(state.where)
    profiles, files = profiles_by_job(given_jobs.document, given_jobs.folder)
    return path(
        given_jobs.document,
        state.document,
        settings,
        profiles=profiles,
        inputs=[given_jobs.source, state.source, *(plan_input("profile", file) for file in files)],
        where=given_jobs.where,
        where_snapshot=state.where,
    )


def profiles_by_job(jobs: Jobs, folder: Path) -> tuple[dict[str, Profile], list[Path]]:
    """Profiles by job name, and their files, each once; relative paths start in the folder of the jobs."""
    files = {job.name: folder / job.profile for job in jobs.jobs if job.profile is not None}
    read = {file: Profile.load(file) for file in dict.fromkeys(files.values())}
    return {name: read[file] for name, file in files.items()}, list(read)
