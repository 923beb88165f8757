"""Settings for a job on its path: request split, prefetch chunk, striping, Data-on-MDT (AIOT, III-B.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.centre.plan.job_io import JobIo, Reads, SharedFile
from vani.centre.plan.path_layers import DIMENSIONS, Network
from vani.centre.plan.placement.stripe_size import Writing, stripe_size_for
from vani.centre.plan.schema import Left
from vani.centre.plan.schema.path import RequestSplit
from vani.centre.plan.schema.snapshot import BUSY_CPU, BUSY_MEMORY, MetadataServer
from vani.models import contention, stripe_count
from vani.models.forwarding import prefetch_chunk
from vani.models.striping import STRIPE_UNIT
from vani.units import MiB, format_bytes, format_share

LIGHT: Final = 0.5
"""Highest load at which a forwarding node has room to read ahead (our choice; AIOT gives no figure)."""
MOST_METADATA: Final = 0.9
"""Largest share for metadata: one of ten turns is left for other requests (as in the rule FWD003)."""
LARGEST_ON_MDT: Final = MiB
"""Lustre's default limit, `dom_stripesize`, which an administrator may raise (Lustre manual, chapter 20)."""
_MDOPS: Final = DIMENSIONS.index("mdops")


@dataclass
class Settings:
    """The settings to change, and why the others stay (`unchanged`)."""

    split: list[RequestSplit] = field(default_factory=list)
    chunk: int | None = None
    count: int | None = None
    size: int | None = None
    dom: int | None = None
    unchanged: list[Left] = field(default_factory=list)


def settings_of(
    io: JobIo,
    nodes: int,
    forwarders: Sequence[int],
    *,
    network: Network,
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
        P of AIOT. None: the job's own share of metadata operations, at most `MOST_METADATA`.
    """
    settings = Settings()
    for name, why in (
        ("request split", _split(settings, io, forwarders, network, users, metadata_share)),
        ("prefetch chunk", _prefetch(settings, io.reads, forwarders, network, buffers)),
        ("striping", _stripe(settings, io, nodes, network)),
        ("data on the metadata target", _dom(settings, io, mds)),
    ):
        if why is not None:
            settings.unchanged.append(Left(name=name, reason=why))
    return settings


def _split(
    settings: Settings,
    io: JobIo,
    forwarders: Sequence[int],
    network: Network,
    users: Mapping[int, int],
    metadata_share: float | None,
) -> str | None:
    demand = np.array([rate or 0.0 for rate in io.demand])
    layer = network.forwarding
    if not demand[_MDOPS]:
        return (
            "no metadata operations are needed" if io.demand[_MDOPS] == 0 else "its metadata operations are not known"
        )
    peak = layer.peak[list(forwarders)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        taken = np.where(np.isfinite(peak) & (peak > 0), demand / peak, 0.0)
    crowded = [
        fwd
        for fwd, parts in zip(forwarders, taken, strict=True)
        if parts[_MDOPS] > 0 and parts[_MDOPS] == parts.max()
    ]
    if not crowded:
        return "other operations load its forwarding nodes more than metadata does"
    shared = [fwd for fwd in crowded if users[fwd] > 1 or layer.known_load[fwd] > 0]
    if not shared:
        return "it shares no forwarding node"
    share = metadata_share
    if share is None:
        iops = io.demand[DIMENSIONS.index("iops")]
        if iops is None:
            return "its share of metadata operations is not known without its iops; give --metadata-share"
        share = min(MOST_METADATA, demand[_MDOPS] / (demand[_MDOPS] + iops))
    settings.split = [
        RequestSplit(forwarding=layer.names[fwd], metadata_share=round(share, 4)) for fwd in shared
    ]
    return None


def _prefetch(
    settings: Settings,
    reads: Reads | str,
    forwarders: Sequence[int],
    network: Network,
    buffers: Sequence[int | None],
) -> str | None:
    if isinstance(reads, str):
        return reads
    known = [size for fwd in forwarders if (size := buffers[fwd]) is not None]
    if len(known) < len(forwarders) or not known:
        return "prefetch_buffer of its forwarding nodes is not in the snapshot"
    chunk = prefetch_chunk(min(known), len(known), reads.files)
    if reads.request >= chunk:
        return (
            f"reads of {format_bytes(reads.request)} are not smaller than the chunk of {format_bytes(chunk)}"
        )
    if not network.forwarding.knows_loads:
        return "the load of its forwarding nodes is not known"
    load = float(network.loads()[0][list(forwarders)].max())
    if load > LIGHT:
        return f"its forwarding nodes are loaded to {format_share(load)}"
    settings.chunk = chunk
    return None


def _stripe(
    settings: Settings, io: JobIo, nodes: int, network: Network
) -> str | None:
    if io.is_file_per_process:
        settings.count = 1
        return None
    file = io.layout
    if not isinstance(file, SharedFile):
        return file
    if file.processes < 2:
        return "one process moves the bytes of its file"
    most = stripe_count.most_targets(file.size or math.inf, int(network.ost.usable.sum()))
    wanted = stripe_count.wanted_targets(
        bytes_=file.size or 1 << 40,
        nodes=min(nodes, file.processes),
        processes=file.processes,
        most=most,
        per_node=stripe_count.PER_NODE,
        collective=False,
        cached=None,
    )
    settings.count = contention.neat(wanted, most)
    if file.distance is not None:
        whole = file.size or file.distance * file.processes
        strided = whole >= 2 * file.distance * file.processes
        writing = Writing(file.processes, file.distance if strided else None, strided)
        settings.size, _ = stripe_size_for(writing, 0, whole, None, settings.count)
    return None


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
    settings.dom = max(STRIPE_UNIT, 1 << max(0, size - 1).bit_length())
    return None
