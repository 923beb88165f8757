"""The forwarding node of each compute node, and the settings that fit a job's path."""

from __future__ import annotations

import math
import posixpath
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.plan import path_layers
from vani.centre.plan.job_io import JobIo, Reads, SharedFile
from vani.centre.plan.placement.layouts import Writing, stripe_size_for
from vani.centre.plan.schema.plans import Left, RequestSplit
from vani.centre.plan.schema.snapshot import BUSY_CPU, BUSY_MEMORY, MetadataServer
from vani.centre.plan.simulate.metadata_target import cron_line
from vani.models import stripe_count
from vani.models.forwarding import prefetch_chunk
from vani.models.striping import STRIPE_UNIT
from vani.units import MiB, format_bytes, format_share, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import PlannedJob

# Maps each compute node of a job to one forwarding node, to carry as much of the job's demand as possible.
#
# A forwarding node carries min(its compute nodes / the job's compute nodes, its room). If every forwarding node reaches
# the same storage, a greedy mapping is optimal: first compute nodes that can be served completely, then those that a
# forwarding node can serve the most of. (Gains are concave.) With limited reach, a mixed integer program (HiGHS) proves
# the optimum for few forwarding nodes; for more, compute nodes are moved one by one while that helps. No mapping
# carries more than the maximum flow, which may split a compute node.

FEW: Final = 24
"""Most forwarding nodes for which the best mapping is proved."""
_SECONDS: Final = 5.0
_TRIES: Final = 200
_ALIKE: Final = 1e-6


def best_mapping(
    flows: path_layers.Flows,
    room: path_layers.Room,
    order: Sequence[int] | Ints,
    nodes: int,
    *,
    network: path_layers.Network,
    demand: Floats,
    pack: bool,
) -> tuple[dict[int, int], path_layers.Flows, float]:
    """Compute nodes per forwarding node, the flow with that mapping, and an upper bound of any mapping's share.

    Parameters
    ----------
    flows
        Flows if compute nodes could be split.
    order
        Forwarding nodes in queue order, for compute nodes that those in use cannot serve completely.
    nodes
        Number of compute nodes of the job.
    """

    def through(counts: dict[int, int], given: path_layers.Flows) -> path_layers.Flows:
        """The flow if each compute node uses only its forwarding node."""
        sums = path_layers.by_forwarder(given)
        if sums.keys() == counts.keys() and all(sums[fwd] <= n / nodes + path_layers.DUST for fwd, n in counts.items()):
            return given
        limited = path_layers.Room(np.zeros_like(room.forwarding), room.storage, room.ost)
        for fwd, count in counts.items():
            limited.forwarding[fwd] = min(float(room.forwarding[fwd]), count / nodes)
        return path_layers.largest(network, limited, demand, exact=len(network.reach) > 1, pack=pack)

    counts = _dealt(path_layers.by_forwarder(flows), room.forwarding, order, nodes)
    mapped = through(counts, flows)
    bound = path_layers.carried(flows)
    if path_layers.carried(mapped) >= 1 - _ALIKE:
        return counts, mapped, 1.0
    usable = np.flatnonzero(room.forwarding > path_layers.DUST)
    if len(set(network.groups[usable].tolist())) == 1:
        # `_dealt` is optimal here, up to the limits of the storage.
        return counts, mapped, path_layers.carried(mapped)
    most = path_layers.maximum(network, room)
    bound = min(max(bound, path_layers.carried(most)), _of_forwarders(room.forwarding[usable], nodes))
    if path_layers.carried(mapped) < bound - _ALIKE:
        # A mapping that follows the maximum flow is often already optimal.
        other = _dealt(path_layers.by_forwarder(most), room.forwarding, order, nodes)
        counts, mapped = _better((counts, mapped), (other, through(other, most)))
    if path_layers.carried(mapped) < bound - _ALIKE:
        proved, least_bound = _program(network, room, usable, nodes) if len(usable) <= FEW else ({}, 1.0)
        bound = min(bound, least_bound)
        if proved:
            counts, mapped = _better((counts, mapped), (proved, through(proved, [])))
        else:
            counts, mapped = _moved(counts, mapped, through, room.forwarding, usable, nodes, bound)
    return counts, mapped, max(bound, path_layers.carried(mapped))


def _better(
    first: tuple[dict[int, int], path_layers.Flows], second: tuple[dict[int, int], path_layers.Flows]
) -> tuple[dict[int, int], path_layers.Flows]:
    return second if path_layers.carried(second[1]) > path_layers.carried(first[1]) + _ALIKE else first


def _dealt(sums: dict[int, float], room: Floats, order: Sequence[int] | Ints, nodes: int) -> dict[int, int]:
    """Assign compute nodes where they are served completely, and the rest where the largest part of one is."""
    units = np.minimum(room, 1.0) * nodes
    whole = np.floor(units + 1e-6).astype(np.int64)
    used = np.array(list(sums), dtype=np.int64)
    share = np.array(list(sums.values()))
    # In proportion to the flow, which keeps the loads of Algorithm 1, but at most as many as are served completely.
    wanted = share / float(share.sum()) * nodes
    proportional = np.floor(wanted + 1e-6).astype(np.int64)
    counts = dict(zip(used.tolist(), np.minimum(proportional, whole[used]).tolist(), strict=True))
    rest = nodes - sum(counts.values())
    turns = used[np.argsort(proportional - wanted, kind="stable")].tolist()
    for most, candidates in ((1, turns), (nodes, turns), (nodes, [int(fwd) for fwd in order])):
        for fwd in candidates if rest else ():
            more = min(rest, most, int(whole[fwd]) - counts.get(fwd, 0))
            counts[fwd] = counts.get(fwd, 0) + max(0, more)
            rest -= max(0, more)
    if rest:
        reached = [fwd for fwd in dict.fromkeys([*turns, *map(int, order)])
            if units[fwd] - whole[fwd] > path_layers.DUST]
        parts = sorted(reached, key=lambda fwd: -round(float(units[fwd] - whole[fwd]), 9))
        for fwd in parts[:rest]:
            counts[fwd] = counts.get(fwd, 0) + 1
        # All are full: the rest joins those that carry most.
        for n in range(max(0, rest - len(parts))):
            fwd = turns[n % len(turns)]
            counts[fwd] = counts.get(fwd, 0) + 1
    return {fwd: count for fwd, count in counts.items() if count}


def _of_forwarders(room: Floats, nodes: int) -> float:
    """Upper bound of the share that forwarding nodes carry, with unlimited storage."""
    units = np.minimum(room, 1.0) * nodes
    whole = np.floor(units + 1e-6)
    rest = max(0, nodes - int(whole.sum()))
    parts = np.sort(np.maximum(units - whole, 0.0))[::-1]
    return min(1.0, float(min(nodes, whole.sum()) + parts[:rest].sum()) / nodes)


def _program(
    network: path_layers.Network, room: path_layers.Room, usable: Ints, nodes: int
) -> tuple[dict[int, int], float]:
    """The best mapping from a mixed integer program, and its bound; empty on a timeout or without scipy."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        return {}, 1.0
    behind = np.minimum(room.storage, [room.ost[targets].sum() for targets in network.behind])
    pairs = [(n, int(node)) for n, fwd in enumerate(usable) for node in network.reach[network.groups[fwd]]]
    count, flows = len(usable), len(pairs)
    # Columns: compute nodes of each forwarding node, then flows from forwarding to storage nodes.
    of_forwarder = np.zeros((count, count + flows))
    of_storage = np.zeros((len(behind), count + flows))
    for column, (n, node) in enumerate(pairs, start=count):
        of_forwarder[n, column] = of_storage[node, column] = 1.0
    rooms = LinearConstraint(of_forwarder.copy(), -np.inf, np.minimum(room.forwarding[usable], 1.0))
    of_forwarder[:, :count] = -np.eye(count) / nodes
    all_nodes = np.concatenate([np.ones(count), np.zeros(flows)])[None, :]
    answer = milp(
        np.concatenate([np.zeros(count), -np.ones(flows)]),
        integrality=np.concatenate([np.ones(count), np.zeros(flows)]),
        bounds=Bounds(0, np.concatenate([np.full(count, nodes), np.ones(flows)])),
        constraints=[
            rooms,
            LinearConstraint(of_forwarder, -np.inf, 0),
            LinearConstraint(of_storage, -np.inf, np.minimum(behind, 1.0)),
            LinearConstraint(all_nodes, nodes, nodes),
        ],
        options={"time_limit": _SECONDS, "mip_rel_gap": 1e-7},
    )
    bound = 1.0 if answer.mip_dual_bound is None else min(1.0, float(-answer.mip_dual_bound))
    if answer.x is None:
        return {}, bound
    numbers = np.round(answer.x[:count]).astype(np.int64)
    return {int(fwd): int(number) for fwd, number in zip(usable, numbers, strict=True) if number}, bound


def _moved(
    counts: dict[int, int],
    mapped: path_layers.Flows,
    through: Callable[[dict[int, int], path_layers.Flows], path_layers.Flows],
    room: Floats,
    usable: Ints,
    nodes: int,
    bound: float,
) -> tuple[dict[int, int], path_layers.Flows]:
    """Move compute nodes away from where least of them is carried, as long as that helps."""
    tries = 0
    improved = True
    while improved and tries < _TRIES:
        improved = False
        sums = path_layers.by_forwarder(mapped)
        idle = sorted(counts, key=lambda fwd: sums.get(fwd, 0.0) - counts[fwd] / nodes)
        free = sorted(usable.tolist(), key=lambda fwd: sums.get(fwd, 0.0) - float(room[fwd]))
        for source, target in ((a, b) for a in idle[:8] for b in free[:8] if a != b):
            changed = {**counts, source: counts[source] - 1, target: counts.get(target, 0) + 1}
            changed = {fwd: count for fwd, count in changed.items() if count}
            flows = through(changed, [])
            tries += 1
            if path_layers.carried(flows) > path_layers.carried(mapped) + _ALIKE:
                counts, mapped, improved = changed, flows, path_layers.carried(flows) < bound - _ALIKE
                break
            if tries >= _TRIES:
                break
    return counts, mapped


# Settings for a job on its path: request split, prefetch chunk, striping, Data-on-MDT (AIOT, III-B.2).

LIGHT: Final = 0.5
"""Highest load at which a forwarding node has room to read ahead (our choice; AIOT gives no figure)."""
MAX_METADATA: Final = 0.9
"""Largest share for metadata: one of ten turns is left for other requests (as in the rule FWD003)."""
LARGEST_ON_MDT: Final = MiB
"""Lustre's default limit, `dom_stripesize`, which an administrator may raise (Lustre manual, chapter 20)."""
_MDOPS: Final = path_layers.DIMENSIONS.index("mdops")


@dataclass
class Settings:
    """The settings to change, and why the others stay (`unchanged`), by their names in the plan."""

    request_split: list[RequestSplit] = field(default_factory=list)
    prefetch_chunk: int | None = None
    stripe_count: int | None = None
    stripe_size: int | None = None
    dom: int | None = None
    unchanged: list[Left] = field(default_factory=list)


def settings_of(
    io: JobIo,
    nodes: int,
    forwarders: Sequence[int],
    *,
    network: path_layers.Network,
    buffers: Sequence[int | None],
    users: Mapping[int, int],
    metadata_share: float | None,
    mds: MetadataServer | None = None,
) -> Settings:
    """The settings of a job, once all jobs have their paths.

    Parameters
    ----------
    forwarders
        Forwarding nodes that the job's compute nodes use.
    buffers
        Prefetch buffer in bytes of each forwarding node of the machine; None if unknown.
    users
        Number of jobs in the plan that use each forwarding node.
    mds
        The metadata server; None if unknown.
    metadata_share
        P of AIOT. None: the job's own share of metadata operations, at most `MAX_METADATA`.
    """
    shared = [fwd for fwd in forwarders if users[fwd] > 1 or network.forwarding.known_load[fwd] > 0]
    settings = Settings()
    for name, why in (
        ("request split", _split(settings, io, forwarders, network, shared, metadata_share)),
        ("prefetch chunk", _prefetch(settings, io.reads, forwarders, network, buffers)),
        ("striping", _stripe(settings, io, nodes, network)),
        ("data on the metadata target", _dom(settings, io, mds)),
    ):
        if why is not None:
            settings.unchanged.append(Left(name=name, reason=why))
    return settings


def _split(
    settings: Settings, io: JobIo, forwarders: Sequence[int], network: path_layers.Network,
    shared: Sequence[int], metadata_share: float | None,
) -> str | None:
    demand = np.array([rate or 0.0 for rate in io.demand])
    layer = network.forwarding
    if not demand[_MDOPS]:
        known = io.demand[_MDOPS] == 0
        return "no metadata operations are needed" if known else "its metadata operations are not known"
    peak = layer.peak[list(forwarders)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        taken = np.where(np.isfinite(peak) & (peak > 0), demand / peak, 0.0)
    most = (taken[:, _MDOPS] > 0) & (taken[:, _MDOPS] == taken.max(axis=1))
    crowded = [fwd for fwd, is_most in zip(forwarders, most, strict=True) if is_most]
    if not crowded:
        return "other operations load its forwarding nodes more than metadata does"
    both = [fwd for fwd in crowded if fwd in shared]
    if not both:
        return "it shares no forwarding node"
    share = metadata_share
    if share is None:
        iops = io.demand[path_layers.DIMENSIONS.index("iops")]
        if iops is None:
            return "its share of metadata operations is not known without its iops; give --metadata-share"
        share = min(MAX_METADATA, demand[_MDOPS] / (demand[_MDOPS] + iops))
    share = round(share, 4)
    settings.request_split = [RequestSplit(forwarding=layer.names[fwd], metadata_share=share) for fwd in both]
    return None


def _prefetch(
    settings: Settings, reads: Reads | str, forwarders: Sequence[int], network: path_layers.Network,
    buffers: Sequence[int | None],
) -> str | None:
    if isinstance(reads, str):
        return reads
    known = [size for fwd in forwarders if (size := buffers[fwd]) is not None]
    if len(known) < len(forwarders) or not known:
        return "prefetch_buffer of its forwarding nodes is not in the snapshot"
    request, files = reads
    chunk = prefetch_chunk(min(known), len(known), files)
    if request >= chunk:
        return f"reads of {format_bytes(request)} are not smaller than the chunk of {format_bytes(chunk)}"
    if not network.forwarding.knows_loads:
        return "the load of its forwarding nodes is not known"
    load = float(network.loads()[0][list(forwarders)].max())
    if load > LIGHT:
        return f"its forwarding nodes are loaded to {format_share(load)}"
    settings.prefetch_chunk = chunk
    return None


def _stripe(settings: Settings, io: JobIo, nodes: int, network: path_layers.Network) -> str | None:
    if io.is_file_per_process:
        settings.stripe_count = 1
        return None
    file = io.layout
    if not isinstance(file, SharedFile):
        return file
    if file.processes < 2:
        return "one process moves the bytes of its file"
    most = stripe_count.most_targets(file.size or math.inf, int(network.ost.usable.sum()))
    users = min(nodes, file.processes)
    wanted = stripe_count.wanted_targets(nodes=users, most=most, per_node=stripe_count.PER_NODE)
    settings.stripe_count = stripe_count.neat(wanted, most)
    if file.distance is not None:
        whole = file.size or file.distance * file.processes
        strided = whole >= 2 * file.distance * file.processes
        writing = Writing(file.processes, file.distance if strided else None, strided)
        settings.stripe_size, _ = stripe_size_for(writing, 0, whole, None, settings.stripe_count)
    return None


_MAX_SHARE: Final = 1e-6
"""Share of the metadata target's free space that one file may take: a million such files fill it (our choice)."""
_EXPIRES_S: Final = 7 * 86_400.0
"""Time without use after which files move to OSTs. AIOT names none; a week is our choice."""


def _dom(settings: Settings, io: JobIo, mds: MetadataServer | None) -> str | None:
    size = io.file_size
    if size is None:
        return "the size of its files is not known"
    if size > LARGEST_ON_MDT:
        return f"its files of {format_bytes(size)} are too large for the metadata target"
    if mds is None or mds.cpu is None:
        return "the load of the metadata server is not known"
    if mds.cpu >= BUSY_CPU or (mds.memory or 0.0) >= BUSY_MEMORY:
        return "the metadata server is busy"
    if mds.free is None:
        return "the free space of the metadata target is not known"
    if size > _MAX_SHARE * mds.free:
        return f"the metadata target has {format_bytes(mds.free)} left"
    settings.dom = max(STRIPE_UNIT, 1 << max(0, size - 1).bit_length())
    return None


# Commands that apply a path's settings on forwarding nodes (as Lustre clients) and to folders of new files.

_SLOTS: Final = 8
"""Lustre's default number of requests in flight from a client to each target."""
_MAX_SLOTS: Final = 256


def lines_of(settings: Settings, job: PlannedJob) -> list[str]:
    """Commands and hints. The folder of the job's files replaces DIR if jobs.yaml has it."""
    lines = []
    if settings.request_split:
        share = settings.request_split[0].metadata_share
        names = " ".join(part.forwarding for part in settings.request_split)
        slots = max(1, min(_MAX_SLOTS, round(_SLOTS * share / max(1 - share, 1 / _MAX_SLOTS))))
        lines += [
            f"# On {names}; LWFS takes P = {share:g} from its own server. For a Lustre client, limit requests "
            "in flight:",
            f"lctl set_param mdc.*.max_rpcs_in_flight={slots} osc.*.max_rpcs_in_flight={_SLOTS}",
        ]
    if settings.prefetch_chunk is not None:
        ahead = max(1, math.ceil(settings.prefetch_chunk / MiB))
        lines += ["# On its forwarding nodes:", f"lctl set_param llite.*.max_read_ahead_per_file_mb={ahead}"]
    folder = posixpath.dirname(job.creations[0].path) if job.creations else "DIR"
    count = "" if settings.stripe_count is None else f" -c {settings.stripe_count}"
    size = "" if settings.stripe_size is None else f" -S {lfs_size(settings.stripe_size)}"
    if settings.dom is not None:
        on_mdt = f"-E {lfs_size(settings.dom)} -L mdt -E -1{count or ' -c 1'}"
        lines.append(f"lfs setstripe {on_mdt}{size} {shlex.quote(folder)}")
        lines.append(f"# line of a crontab, against a full metadata target: {cron_line(folder, _EXPIRES_S)}")
    elif count:
        lines.append(f"lfs setstripe{count}{size} {shlex.quote(folder)}")
        if size:
            hints = f"striping_factor={settings.stripe_count} striping_unit={settings.stripe_size}"
            lines.append(f"# or as MPI-IO hints: {hints}")
    return lines
