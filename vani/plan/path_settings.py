"""Settings of a job on the path that it gets: request split, prefetch chunk, striping (AIOT, section III-B.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.models import contention, striping
from vani.models.contention import Burst, Path
from vani.models.forwarding import prefetch_chunk
from vani.plan.job_io import JobIo, Reads, SharedFile
from vani.plan.path_layers import DIMENSIONS, Network
from vani.schema.plan import Left
from vani.schema.plan.path import RequestSplit
from vani.units import KiB, MiB, format_bytes, format_share

__all__ = ["Settings", "settings_of"]

LIGHT: Final = 0.5
"""Below half of its bandwidth a forwarding node has room to read ahead; AIOT gives no figure."""
MOST_METADATA: Final = 0.9
"""One of ten turns is left to others, however many metadata requests there are (as in the rule FWD003)."""
_LEAST_STRIPE: Final = 512 * KiB
_LEAST_PART: Final = 16 * MiB
_MDOPS: Final = DIMENSIONS.index("mdops")


@dataclass
class Settings:
    """Settings that change, and why the others stay."""

    split: list[RequestSplit] = field(default_factory=list)
    chunk: int | None = None
    count: int | None = None
    size: int | None = None
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
) -> Settings:
    """The settings of one job when all jobs have their paths.

    Parameters
    ----------
    forwarders
        Forwarding nodes that its compute nodes use.
    buffers
        Prefetch buffer of each forwarding node of the machine in bytes, None where it is not known.
    users
        By forwarding node, how many jobs of the plan use it.
    metadata_share
        P; None: the job's own share of metadata operations, at most `MOST_METADATA`.
    """
    settings = Settings()
    for name, why in (
        ("request split", _split(settings, io, forwarders, network, users, metadata_share)),
        ("prefetch chunk", _prefetch(settings, io.reads, forwarders, network, buffers)),
        ("striping", _stripe(settings, io, nodes, forwarders, network)),
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
        return "no metadata operations are asked for" if io.demand[_MDOPS] == 0 else "its mdops are not known"
    peak = layer.peak[list(forwarders)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        taken = np.where(np.isfinite(peak) & (peak > 0), demand / peak, 0.0)
    crowded = [
        fwd
        for fwd, parts in zip(forwarders, taken, strict=True)
        if parts[_MDOPS] > 0 and parts[_MDOPS] == parts.max()
    ]
    if not crowded:
        return "other operations take more of its forwarding nodes than metadata"
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
            f"reads of {format_bytes(reads.request)} are no smaller than the chunk of {format_bytes(chunk)}"
        )
    if not network.forwarding.knows_loads:
        return "how loaded its forwarding nodes are is not known"
    load = float(network.loads()[0][list(forwarders)].max())
    if load > LIGHT:
        return f"its forwarding nodes are loaded to {format_share(load)}"
    settings.chunk = chunk
    return None


def _stripe(
    settings: Settings, io: JobIo, nodes: int, forwarders: Sequence[int], network: Network
) -> str | None:
    if io.is_file_per_process:
        settings.count = 1
        return None
    file = io.layout
    if not isinstance(file, SharedFile):
        return file
    if file.processes < 2:
        return "one process moves the bytes of its file"
    rate = io.demand[0]
    if not rate:
        return "its iobw is not known" if rate is None else "it moves no bytes"
    target = _peak(network.ost.peak[network.ost.usable, 0])
    if target is None:
        return "no peak of the OSTs is known"
    relay = _peak(network.forwarding.peak[list(forwarders), 0])
    most = min(int(network.ost.usable.sum()), contention.LUSTRE_MAX_STRIPES)
    if file.size:
        most = min(most, max(1, math.ceil(file.size / _LEAST_STRIPE)))
    path = Path(
        target=target,
        targets=int(network.ost.usable.sum()),
        io_node=relay,
        io_nodes=len(forwarders),
        client=contention.CLIENT_RATE,
    )
    burst = Burst(
        bytes=float(file.size or 1 << 40), nodes=min(nodes, file.processes), processes=file.processes
    )
    by_equation = striping.equation_3_count(rate / file.processes, file.processes, target)
    knee = contention.fewest_targets(burst, path, most) * contention.MARGIN
    count = contention.neat(min(by_equation, knee), most)
    if file.distance is not None:
        part = striping.parted(file.distance, file.processes, count, _LEAST_PART)
        settings.size = striping.whole_stripes(part, _LEAST_STRIPE)
        if file.size:
            count = contention.neat(min(count, math.ceil(file.size / settings.size)), most)
    settings.count = count
    return None


def _peak(peaks: np.ndarray) -> float | None:
    """The usual peak of bytes; None where none is known."""
    known = peaks[np.isfinite(peaks) & (peaks > 0)]
    return float(np.median(known)) if len(known) else None
