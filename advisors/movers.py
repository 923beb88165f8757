"""The processes that move the bytes of a shared file."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.access_table import Traffic
from vani.advisors.commands import SHELLS
from vani.advisors.data_files import Access, Item, is_data, is_software
from vani.models.run_time import seconds_of
from vani.models.savings import LARGE
from vani.models.stripe_count import CLIENT_RATE
from vani.units import MiB

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Interface, Profile, RankBalance
    from vani.schema.system import System

FUNNEL_PROCESSES: Final = 4
"""Least processes for a funnel, as in POS001: with fewer there is little to distribute."""
FULL_NODE: Final = 128
"""Most processes on a node with an unknown number of cores: the cores of usual nodes without GPUs."""
FUNNEL_BYTES: Final = MiB
"""Least bytes for a funnel (our choice): one process may well write a log or a control file."""

# Our choice: processes with more I/O than this share of the busiest one's do not just wait.
_WAITING: Final = 0.1
# Our choice: the rest is headers.
_ALONE: Final = 0.9
# Our choice: writing twice may be two steps of a program.
_TIMES: Final = 3.0

_HIDES_WRITES: Final = frozenset(
    {"written_without_writes", "stream_buffered", "asynchronous", "memory_mapped", "calls_below_missing"}
)
_ABOVE_MPIIO: Final = frozenset({"mpiio", "pnetcdf", "hdf5", "netcdf"})

# Most of the calls (our choice): aggregators do not help with the others.
_MOSTLY: Final = 0.5


@dataclass(frozen=True)
class Movers:
    """The processes that read (or write) a file.

    `processes` is the number that have bytes. In collective calls these are all participants, while only the `calling`
    processes, which ROMIO chose as aggregators for the file's present layout, call the file system.
    """

    processes: int
    calling: int
    collective: bool


def movers_of(file: FileEntity, profile: Profile, *, reads: bool) -> Movers:
    """The processes that read or write a file, and whether aggregators act for others."""
    calling = file.readers if reads else file.writers
    if not is_collective(file, profile, calling):
        return Movers(calling, calling, collective=False)
    callers = _callers(file, Traffic.on(profile, [file.path]))
    return Movers(max(callers, calling), calling, collective=True)


def moved_in(file: FileEntity, *, reads: bool) -> tuple[int, float]:
    """Bytes moved in a direction, and seconds in which any process moves them or flushes."""
    io = file.io
    if reads:
        return io.bytes.read or 0, io.busy_s.read or 0.0
    return io.bytes.written or 0, seconds_of(io.busy_s, "write_synced")


def nodes_between(
    file: FileEntity, movers: Movers, profile: Profile, system: System, *, per_node: int, reads: bool
) -> tuple[int, int]:
    """The least and the greatest number of nodes that move a file's bytes; equal if the job or the trace has it.

    Otherwise the least is what the processes need with one per core, and what the rate needs, because a client sends at
    most `CLIENT_RATE`. The greatest follows from `per_node` processes on each.
    """
    if profile.job.nodes:
        nodes = min(movers.processes, profile.job.nodes)
        return nodes, nodes
    moved, busy = moved_in(file, reads=reads)
    sending = math.ceil(min(movers.processes, moved / busy / CLIENT_RATE)) if busy else 1
    full = math.ceil(movers.processes / (system.compute.cores_per_node or FULL_NODE))
    least = min(movers.processes, max(full, sending))
    return least, max(least, math.ceil(movers.processes / per_node))


def is_collective(file: FileEntity, profile: Profile, calling: int) -> bool:
    """True if collective calls request most of a file's bytes, or a few processes call the file system for many."""
    traffic = Traffic.on(profile, [file.path])
    if (callers := _callers(file, traffic)) < 2 or not traffic.of(*_ABOVE_MPIIO):
        return False
    share = traffic.collective
    if share is None:
        layers = [layer for layer in profile.interfaces or () if layer.app in file.apps]
        share = max((known for layer in layers if (known := _share(layer)) is not None), default=None)
    return share is not None and (share >= _MOSTLY or 0 < 2 * calling <= callers)


def _callers(file: FileEntity, traffic: Traffic) -> int:
    """Processes that use a file. With deferred open, only aggregators open it, while all make calls of MPI-IO."""
    return max(file.processes, *(row.processes or 0 for row in traffic.rows), 0)


def gathers(app: App, profile: Profile) -> bool:
    """True if most bytes that an app writes go through collective calls, in which a few processes write for all."""
    return _together(app, profile, reads=False) >= _MOSTLY * (app.io.bytes.written or 0) > 0


def moves_collectively(app: App, profile: Profile) -> bool:
    """True if most bytes that an app reads and writes go through collective calls."""
    return _together(app, profile) >= _MOSTLY * (app.io.bytes.total or 0) > 0


def _together(app: App, profile: Profile, *, reads: bool | None = None) -> int:
    """Bytes that collective calls of a library request; all of its bytes if most of its calls are collective."""
    shares = {layer.layer: _share(layer) or 0.0 for layer in profile.interfaces or () if layer.app == app.name}
    bytes_of = Counter[str]()
    for row in Traffic.of_app(profile, app, reads=reads).rows:
        whole = (row.bytes or 0) if shares.get(row.layer, 0.0) >= _MOSTLY else 0
        bytes_of[row.layer] += whole if row.bytes_collective is None else row.bytes_collective
    return max(bytes_of.values(), default=0)


def may_gather(app: App, profile: Profile) -> bool:
    """True if ranks under strace may write with collective calls, which do not appear in a log of system calls.

    The sign is that all ranks open the files that one of them writes. That is typical of MPI-IO aggregators, while a
    process that gathers data in the program's own way is the only one to open its files.
    """
    if not any(
        trace.tool == "strace" and trace.layout == "ranks" and trace.app == app.name for trace in profile.traces
    ):
        return False
    # Every process of parallel HDF5 may write headers.
    alone = app.balance is not None and app.balance.busiest_bytes >= _ALONE * (app.io.bytes.total or 0)
    outputs = [f for f in profile.files if app.name in f.apps and (f.writers == 1 or (alone and f.writers > 1))]
    opened_by_all = sum(file.io.bytes.written or 0 for file in outputs if file.processes >= app.processes)
    return opened_by_all >= _MOSTLY * (app.io.bytes.written or 0) > 0


def may_write_unseen(app: App, profile: Profile) -> bool:
    """True if other processes than the recorded writer may write, too, in calls that are not recorded.

    A single file that one process has open may be its log, but files for half of the processes are not.
    MPI-IO calls on a written file may be collective.
    """
    used = {file.path: file for file in profile.files if app.name in file.apps}
    for entry in profile.unseen or ():
        known = [used[path] for path in entry.files if path in used]
        several = any(file.processes > 1 for file in known) or 2 * entry.count >= app.processes
        if entry.kind in _HIDES_WRITES and known and several:
            return True
        if entry.kind == "mpiio_calls_missing" and any(file.writers for file in known):
            return True
    return False


def is_funnel(
    app: App, profile: Profile, *, processes: float = FUNNEL_PROCESSES, least: float = FUNNEL_BYTES
) -> bool:
    """True if one of an app's processes, or a few of them, write the data of all, while the others wait."""
    balance = app.balance
    if balance is None or app.processes < processes * app.instances or not is_few(balance, app):
        return False
    if (app.io.bytes.written or 0) < least or gathers(app, profile) or may_gather(app, profile):
        return False
    if may_write_unseen(app, profile):
        return False
    if balance.writing_processes == 1 and not are_plain(app, profile):
        return True
    return _waits(app, balance, profile)


def is_few(balance: RankBalance, app: App) -> bool:
    """True if one process writes, or at most one in four of a single run."""
    most = app.processes // FUNNEL_PROCESSES if app.instances == 1 else 1
    return 1 <= balance.writing_processes <= max(1, most)


def _waits(app: App, balance: RankBalance, profile: Profile) -> bool:
    """True if processes wait for the busiest one, because they do next to no I/O.

    Processes that read data have work of their own; modules of Python are no data.
    """
    # Children of a shell are commands, and one of them may well write everything (our choice).
    if app.name.endswith(".sh") or app.name in SHELLS:
        return False
    others, slowest = balance.median_io_time_s or 0.0, balance.slowest_io_time_s or 0.0
    files = [file for file in profile.files if app.name in file.apps]
    reading = balance.reading_processes
    if any(is_software(file.path) for file in files):
        reading = max((file.readers for file in files if is_data(file.path)), default=0)
    # The first process may read: it loads the program's files.
    return (
        reading <= 1
        and (balance.writing_processes > 1 or balance.slowest_rank == balance.busiest_rank)
        and others <= _WAITING * slowest
        and (app.io.busy_s.write or 0.0) >= _WAITING * (app.runtime_s or 0.0)
    )


def is_moved_within(file: FileEntity) -> bool:
    """True if a process repeatedly moves data within a file: a library makes room for something that grows.

    The copy starts at the end, because bytes must be read before they are overwritten. Without that, bytes are read and
    written at the same place: a buffer goes along with each piece.
    """
    # A temporary file that the run writes and reads is scratch.
    if file.role == "temporary" or file.generations or file.readers != 1 or file.writers != 1:
        return False
    if file.format != "netcdf" and (file.stride or 0) >= 0:
        return False
    return all(Access(Item(0, file), reads).times >= _TIMES for reads in (True, False))


def is_rewritten(file: FileEntity) -> bool:
    """True if a small file is written as a whole several times, such as a program's state: nothing can be joined."""
    writes = Access(Item(0, file), reads=False)
    return writes.distinct <= LARGE and writes.times >= _TIMES


def _share(layer: Interface) -> float | None:
    if layer.collective_share is not None:
        return layer.collective_share
    return {"collective": 1.0, "independent": 0.0}.get(layer.transfer or "")


def are_plain(app: App, profile: Profile) -> bool:
    """True if an app's processes are not ranks but children of a shell, or workers of a data loader.

    For programs without MPI or torchrun, strace and DFTracer record all processes; other tracers record ranks.
    """
    return any(trace.layout == "processes" and trace.app == app.name for trace in profile.traces)
