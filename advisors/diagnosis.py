"""The program's behaviour as observations from a fixed list, whether or not it costs time (`docs/diagnosis.md`).

An observation is true or false and has no severity. Each pattern is a function from a `Workload` to a `Seen` or None.
`docs/diagnosis.md` has the thresholds and their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from vani.advisors import access_table, data_files
from vani.advisors.access_table import Traffic
from vani.advisors.folder_table import LOOKS, Search, searches
from vani.advisors.movers import FUNNEL_BYTES, are_plain, gathers, is_funnel, movers_of, moves_collectively
from vani.advisors.rule import value_at
from vani.advisors.small_requests import SMALL, small_share_of
from vani.models.io_time import calls_s, lookup_share
from vani.models.verdict import locking
from vani.schema.advice import Evidence, Observation, Target
from vani.units import KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import App, IOStats, NamePattern, Profile


Seconds = Mapping[data_files.Item, float | None]
"""Seconds of some calls on each file; None if not known."""

NOTABLE: Final = 0.1
"""Least notable share of all requests or bytes (Drishti's `small_requests`, `interface_stdio`)."""
REQUESTS: Final = 1000
"""Fewer requests are start-up, configuration or a log (Drishti's `small_requests_absolute`)."""
MANY: Final = 100
"""Least requests that are not just start-up if most requests of the run are like them."""
MOST: Final = 0.5

_SHOWN: Final = 3
"""Most places whose figures become evidence."""


class Seen(NamedTuple):
    """A detected pattern: its costliest place, paths of values in the profile, and its share of the I/O time."""

    target: Target
    attributes: Sequence[str]
    share: float | None


@dataclass(frozen=True)
class Workload:
    """A profile with figures that several patterns need."""

    profile: Profile

    @cached_property
    def items(self) -> list[data_files.Item]:
        """Listed files that are data of the program. Each represents a part of its name pattern."""
        return data_files.data_files(self.profile)

    @cached_property
    def shared(self) -> list[data_files.Item]:
        """Files that two or more processes read or write."""
        return [
            item
            for item in self.items
            if any(movers_of(item.file, self.profile, reads=reads).processes >= 2 for reads in (True, False))
        ]

    @cached_property
    def streams(self) -> set[str]:
        """Files that move through stdio alone, whose buffer joins the calls."""
        layers = access_table.layers_of(self.profile)
        return {path for path, own in layers.items() if "stdio" in own and "posix" not in own}

    @cached_property
    def moved(self) -> float:
        """Bytes read from and written to data files."""
        return sum(map(moved_in, self.items))

    @cached_property
    def names(self) -> list[tuple[int, NamePattern]]:
        """Name patterns of data files, with their indexes in the profile."""
        return [row for row in enumerate(self.profile.patterns or ()) if data_files.is_data(row[1].pattern)]

    @cached_property
    def io_s(self) -> float:
        """Seconds in file-system calls, summed over processes."""
        return calls_s(self.profile.workflow.io)

    def share(self, time_s: float | None) -> float | None:
        """A time as a share of the I/O time; None if times are unknown."""
        if time_s is None or not self.io_s:
            return None
        return min(1.0, time_s / self.io_s)

    def moves_much(self, items: Sequence[data_files.Item]) -> bool:
        """True if these files have a notable share of all bytes."""
        return bool(items) and self.moved > 0 and sum(map(moved_in, items)) >= NOTABLE * self.moved

    def much(self, items: Sequence[data_files.Item], *attributes: str) -> Seen | None:
        """A pattern found in files with a notable share of all bytes; None if they have less."""
        return self.in_files(items, *attributes) if self.moves_much(items) else None

    def buffered(self, item: data_files.Item) -> float:
        """Number of stdio calls that read or write a file."""
        calls = {
            reads: sum(row.calls for row in self.rows.get((item.path, reads), ()) if row.layer == "stdio")
            for reads in (True, False)
        }
        return calls[True] * item.part.reads + calls[False] * item.part.writes

    def are_many(self, requests: float, items: Collection[data_files.Item]) -> bool:
        """True if this number of requests is more than start-up and notable, or most of the program's requests.

        Calls of stdio count only where some of the requests are such calls.
        """
        some_streams = any(item.path in self.streams for item in items)
        every = sum(requests_of(item) - (0.0 if some_streams else self.buffered(item)) for item in self.items)
        return requests >= max(REQUESTS, NOTABLE * every) or requests >= max(MANY, MOST * every)

    def misses(self, kinds: frozenset[str]) -> bool:
        """True if activity of one of these kinds is not recorded."""
        return any(entry.kind in kinds for entry in self.profile.unseen or ())

    def in_files(self, items: Sequence[data_files.Item], *attributes: str, part: Seconds | None = None) -> Seen:
        """A pattern found in files; the costliest comes first. `part`: seconds of the calls that it is about."""
        groups = sorted(data_files.alike(items), key=lambda group: max(map(_cost, group)), reverse=True)
        first = groups[0][0]
        row = None if first.part.pattern is None else (self.profile.patterns or ())[first.part.pattern]
        target = Target(kind="file", path=first.path)
        if row is not None and row.files > 1:
            target = Target(kind="dataset", path=row.pattern)
        times = [self.time_s(item, None if part is None else part[item]) for item in items]
        return Seen(
            target,
            [f"{group[0].where}.{name}" for group in groups[:_SHOWN] for name in ("path", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    @staticmethod
    def time_s(item: data_files.Item, part_s: float | None = None) -> float | None:
        """Seconds in calls on a file and those that it represents; of a part of the calls if given."""
        time_s = item.io.time_s.total
        return None if time_s is None else item.part.time * (time_s if part_s is None else min(part_s, time_s))

    @cached_property
    def joint(self) -> set[str]:
        """Files that several processes access through MPI-IO."""
        return access_table.joint_files(self.profile)

    @cached_property
    def rows(self) -> access_table.Rows:
        """The table of accesses."""
        return access_table.rows_of(self.profile)

    def in_names(self, rows: Sequence[tuple[int, NamePattern]], *attributes: str) -> Seen:
        """A pattern found in the files of name patterns; the one with most files comes first."""
        ranked = sorted(rows, key=lambda row: (-(row[1].time_s or 0.0), -row[1].files))
        times = [row.time_s for _, row in rows]
        return Seen(
            Target(kind="dataset" if ranked[0][1].files > 1 else "file", path=ranked[0][1].pattern),
            [f"patterns[{at}].{name}" for at, _ in ranked[:_SHOWN] for name in ("pattern", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    def in_apps(self, apps: Sequence[int], *attributes: str) -> Seen | None:
        """A pattern found in apps; the one with most bytes counts."""
        if not apps:
            return None
        at = max(apps, key=lambda position: self.profile.apps[position].io.bytes.total or 0)
        app = self.profile.apps[at]
        paths = [f"apps[{at}].{name}" for name in attributes]
        return Seen(Target(kind="app", app=app.name), paths, self.share(app.io.time_s.total))

    def in_job(self, *attributes: str, time_s: float | None = None) -> Seen:
        """A pattern found in the whole run."""
        return Seen(Target(kind="job"), attributes, self.share(time_s))


def reads_of(item: data_files.Item) -> float:
    return item.io.ops.read * item.part.reads


def writes_of(item: data_files.Item) -> float:
    return item.io.ops.write * item.part.writes


def requests_of(item: data_files.Item) -> float:
    return reads_of(item) + writes_of(item)


def flushes_of(item: data_files.Item) -> float:
    return item.io.ops.sync * item.part.flushes


def moved_by(item: data_files.Item, *, reads: bool) -> float:
    moved, part = item.io.bytes, item.part
    return (moved.read or 0) * part.read if reads else (moved.written or 0) * part.written


def moved_in(item: data_files.Item) -> float:
    return moved_by(item, reads=True) + moved_by(item, reads=False)


def bytes_of(row: NamePattern) -> int:
    return (row.bytes.read or 0) + (row.bytes.written or 0)


def _cost(item: data_files.Item) -> tuple[float, float, float]:
    return (item.io.time_s.total or 0.0) * item.part.time, moved_in(item), requests_of(item)


def is_tiny(item: data_files.Item) -> bool:
    """True if the file is smaller than a large request, so that no request in it can be large or far from the last."""
    size = data_files.extent(item.file)
    return size is not None and size < SMALL


Pattern = tuple[Callable[[Workload], Seen | None], tuple[str, ...]]
"""A function that detects a pattern, and the rules that act on it."""


RANDOM: Final = 0.2
OPENS: Final = 10
FLUSHES: Final = 100
TIMES_OF_HDF5: Final = 1.5
TIMES: Final = 2.0
PAGE: Final = 4 * KiB
RPC: Final = MiB
LARGE_REQUEST: Final = 64 * KiB
COLLECTIVE_BUFFER: Final = 16 * MiB
LARGE_FILE: Final = 64 * MiB

_HIDES_LIBRARIES: Final = frozenset({"mpiio_calls_missing", "module_off", "module_partial"})
_READS: Final = frozenset({"read", "pread", "pread64", "readv", "fread"})


def _small_requests(run: Workload) -> Seen | None:
    small: dict[data_files.Item, float | None] = {}
    count = 0.0
    for item in run.items:
        if is_tiny(item):
            continue
        for reads, number in ((True, reads_of(item)), (False, writes_of(item))):
            share = small_share_of(item.io, SMALL, reads=reads)
            part = access_table.small_part(run.rows.get((item.path, reads), ()), SMALL)
            if not number or share < MOST:
                continue
            # Headers are many requests and few bytes.
            moved = moved_by(item, reads=reads)
            if part is not None and moved and not part.is_notable(NOTABLE, share * number / moved):
                continue
            time_s = part.time_s if part is not None else None
            if time_s is None:
                time_s = item.io.time_s.read if reads else item.io.time_s.write
            small[item] = (small.get(item) or 0.0) + (time_s or 0.0)
            count += share * number
    if not small or not run.are_many(count, small):
        return None
    attributes = ("io.ops.read", "io.ops.write", "io.transfer_size.read.p50", "io.transfer_size.write.p50")
    return run.in_files([*small], *attributes, part=small)


def _random_access(run: Workload) -> Seen | None:
    return _by_place(run, "random", RANDOM, run.items)


def _strided_access(run: Workload) -> Seen | None:
    return _by_place(run, "strided", MOST, [item for item in run.items if item not in run.shared])


def _interleaved_access(run: Workload) -> Seen | None:
    return _by_place(run, "strided", MOST, run.shared)


def _by_place(run: Workload, kind: str, least: float, among: Sequence[data_files.Item]) -> Seen | None:
    """The files in which at least a share `least` of the requests has offsets of a kind."""
    shares: dict[data_files.Item, float] = {}
    times: dict[data_files.Item, float | None] = {}
    for item in among:
        share = getattr(item.io.access_pattern, kind, None)
        if share is None or share < least or is_tiny(item):
            continue
        time_s = share * ((item.io.time_s.read or 0.0) + (item.io.time_s.write or 0.0))
        sides = [rows for reads in (True, False) if (rows := run.rows.get((item.path, reads)))]
        parts = [access_table.random_part(rows, SMALL) for rows in sides]
        if kind == "random" and parts and None not in parts:
            if not any(part.is_notable(NOTABLE) for part in parts if part is not None):
                continue
            time_s = sum(part.time_s or 0.0 for part in parts if part is not None)
        shares[item], times[item] = share, time_s
    if not shares or not run.are_many(sum(requests_of(item) * share for item, share in shares.items()), shares):
        return None
    attributes = (f"io.access_pattern.{kind}", "io.ops.read", "io.ops.write", "stride", "processes")
    return run.in_files([*shares], *attributes, part=times)


def _shared_file(run: Workload) -> Seen | None:
    return run.much(run.shared, "readers", "writers", "io.bytes.total")


def _one_target(run: Workload) -> Seen | None:
    if {mount.targets for mount in run.profile.storage.mounts or () if mount.type == "lustre"} == {1}:
        return None
    large = (item for item in run.shared if (data_files.extent(item.file) or 0) >= LARGE_FILE)
    items = [item for item in large if item.file.stripe_count == 1]
    return run.much(items, "stripe_count", "size", "readers", "writers")


def _direct_io(run: Workload) -> Seen | None:
    direct = [item for item in run.items if item.file.direct_opens]
    return run.much(direct, "direct_opens", "opens", "io.bytes.total")


def _synchronous_writes(run: Workload) -> Seen | None:
    waiting = [item for item in run.items if data_files.is_synchronous(item.file) and writes_of(item)]
    if sum(map(writes_of, waiting)) < FLUSHES:
        return None
    return run.in_files(waiting, "synchronous_opens", "io.ops.write")


def _searching(run: Workload, kind: Search) -> Seen | None:
    rows = [(at, row) for at, row, search in searches(run.profile) if search == kind]
    if not rows:
        return None
    at, first = max(rows, key=lambda pair: (pair[1].time_s or 0.0, pair[1].calls))
    shares = [share for _, row in rows if (share := lookup_share(run.profile, row)) is not None]
    paths = [f"lookups[{at}].{name}" for name in ("folder", "folders", "calls", "failed", "names")]
    return Seen(Target(kind="directory", path=first.folder), paths, sum(shares) if shares else None)


def _polling(run: Workload) -> Seen | None:
    if (seen := _searching(run, "polling")) is not None:
        return seen
    polled = [item for item in run.items if _is_polled(item)]
    attributes = ("opens", "io.metadata_kinds.stat.count", "io.ops.read", "io.footprint.read", "processes")
    return run.in_files(polled, *attributes) if polled else None


def _is_polled(item: data_files.Item) -> bool:
    """True if each process looks at a file repeatedly and finds little or nothing in it."""
    io = item.io
    looks = item.file.opens + (io.metadata_kinds.stat.count if io.metadata_kinds is not None else 0)
    distinct = io.footprint.read if io.footprint.read is not None else io.bytes.read
    if (distinct or 0) >= SMALL:
        # A process that waits for new data reads at the end of the file and gets no bytes.
        looks = 0
    looks += _empty_reads(io)
    return looks >= LOOKS * max(1, item.file.processes) and io.ops.write + io.ops.sync < MOST * looks


def _empty_reads(io: IOStats) -> int:
    """Reads that return nothing. Sources with return values do not count them; others count them as past the end."""
    got = (io.bytes.read or 0) - (io.past_end.read or 0)
    past_end = io.ops.read if got < io.ops.read else 0
    return past_end + max(0, sum(call.count for call in io.calls or () if call.name in _READS) - io.ops.read)


def _repeated_open(run: Workload) -> Seen | None:
    again = [item for item in run.items if item.file.opens >= OPENS * max(1, item.file.processes)]
    if not again or sum(item.file.opens * item.part.opens for item in again) < REQUESTS:
        return None
    return run.in_files(again, "opens", "processes")


def _flush_after_each_write(run: Workload) -> Seen | None:
    flushed = [item for item in run.items if writes_of(item) and flushes_of(item) >= MOST * writes_of(item)]
    if not flushed or sum(map(flushes_of, flushed)) < FLUSHES:
        return None
    return run.in_files(flushed, "io.ops.write", "io.ops.sync")


def _reread(run: Workload) -> Seen | None:
    return _repeated(run, "read")


def _rewritten(run: Workload) -> Seen | None:
    return _repeated(run, "written")


def _repeated(run: Workload, done: str) -> Seen | None:
    """The files whose bytes move several times in a direction."""
    accesses = [data_files.Access(item, reads=done == "read") for item in run.items]
    again = [
        access.item
        for access in accesses
        if access.bytes >= MiB * (times := data_files.generations_of(access.item.file))
        and access.times >= times * _times(access.item)
    ]
    return run.much(again, f"io.bytes.{done}", f"io.footprint.{done}")


def _times(item: data_files.Item) -> float:
    """Least moves of a byte. HDF5 and netCDF write fill values first, and read chunks again that no cache keeps."""
    return TIMES_OF_HDF5 if item.file.format in ("hdf5", "netcdf") else TIMES


def _reads_past_end(run: Workload) -> Seen | None:
    beyond = [i for i in run.items if (past := i.io.past_end.read) and past >= NOTABLE * (i.io.bytes.read or 0)]
    return run.much(beyond, "io.past_end.read", "io.bytes.read")


def _misaligned(run: Workload) -> Seen | None:
    # A smaller file takes one request or a few.
    large = [item for item in run.items if (data_files.extent(item.file) or 0) >= MiB]
    odd = {item: max(_odd_requests(item), _off_blocks(run, item)) for item in large}
    items = [item for item, count in odd.items() if count >= MOST * requests_of(item) > 0]
    if not items or not run.are_many(sum(odd[item] for item in items), items):
        return None
    return run.in_files(items, "io.transfer_size.read.p50", "io.transfer_size.write.p50", "io.ops.read", "io.ops.write")


def _off_blocks(run: Workload, item: data_files.Item) -> float:
    """Requests to a shared file, if most bytes are in large ones that begin within a block that others write, too."""
    if item not in run.shared or item.file.writers < 2:
        return 0.0
    share = access_table.misaligned_share(run.rows.get((item.path, False), ()), LARGE_REQUEST)
    return writes_of(item) if share is not None and share >= MOST else 0.0


def _independent_io(run: Workload) -> Seen | None:
    shared = [item for item in run.shared if _can_be_joined(item) and _is_independent(run, item.path)]
    return run.much(shared, "readers", "writers")


def _is_independent(run: Workload, path: str) -> bool:
    """True if independent calls of MPI-IO request most bytes, or are most calls where the bytes are not known."""
    share = Traffic.on(run.profile, [path]).collective
    if path in run.joint and share is None:
        layers = [layer for layer in run.profile.interfaces or () if layer.layer == "mpiio"]
        return any((layer.collective_share or 0.0) < MOST for layer in layers)
    return share is not None and share < MOST


def _can_be_joined(item: data_files.Item) -> bool:
    """True if most reads or writes are smaller than a collective buffer, so that joining them helps."""
    return any(small_share_of(item.io, COLLECTIVE_BUFFER, reads=reads) >= MOST for reads in (True, False))


def _low_level_interface(run: Workload) -> Seen | None:
    # The program may call the library without the trace showing it.
    if run.misses(_HIDES_LIBRARIES):
        return None
    plain = {app.name for app in run.profile.apps if are_plain(app, run.profile)}
    items = [item for item in run.shared if item.path not in run.joint and plain.isdisjoint(item.file.apps)]
    return run.much(items, "readers", "writers")


def _stdio_bulk_data(run: Workload) -> Seen | None:
    streams = [item for item in run.items if item.path in run.streams]
    return run.much(streams, "io.bytes.total") if sum(map(moved_in, streams)) >= MiB else None


def _odd_requests(item: data_files.Item) -> float:
    """Lower bound of the requests from a page to an RPC whose size is not a multiple of a page."""
    count = 0.0
    for reads, factor in ((True, item.part.reads), (False, item.part.writes)):
        sizes = data_files.Access(item, reads).sizes
        common = sizes.common if sizes else ()
        count += factor * sum(number for size, number in common if PAGE < size < RPC and size % PAGE)
    return count


FILE_PATTERNS: Final[Mapping[str, Pattern]] = {
    "small_requests": (_small_requests, ("POS002", "POS009", "MIO001", "HD5002", "HD5006")),
    "random_access": (_random_access, ("POS005", "LUS008")),
    "strided_access": (_strided_access, ("POS002", "FWD003")),
    "interleaved_access": (_interleaved_access, ("POS009", "MIO001", "LUS004", "GPF004")),
    "shared_file": (_shared_file, ("LUS002", "LUS004", "LUS008", "BEE001", "CEP001", "CEP002", "GPF004", "MIO004")),
    "one_target": (_one_target, ("LUS002", "LUS004", "LUS008", "PFL001")),
    "repeated_open": (_repeated_open, ("POS003",)),
    "polling": (_polling, ("POS003", "POS008")),
    "flush_after_each_write": (_flush_after_each_write, ("POS010",)),
    "reread": (_reread, ("POS001", "POS011", "BB001", "HD5004")),
    "rewritten": (_rewritten, ("POS011", "HD5007", "HD5008")),
    "reads_past_end": (_reads_past_end, ("POS008",)),
    "misaligned": (_misaligned, ("LUS001", "GPF001", "HD5001")),
    "independent_io": (_independent_io, ("MIO001", "HD5005")),
    "low_level_interface": (_low_level_interface, ("POS009",)),
    "stdio_bulk_data": (_stdio_bulk_data, ("POS012",)),
    "direct_io": (_direct_io, ()),
    "synchronous_writes": (_synchronous_writes, ("POS014",)),
}
"""The function that detects each pattern, and the rules that act on it."""


UNEVEN_BYTES: Final = 0.3
UNEVEN_TIMES: Final = 2.0
FILES: Final = 32
SMALL_FILES: Final = 100
SMALL_FILE: Final = MiB
STATS_PER_OPEN: Final = 2
AMPLIFICATION: Final = 2.0
WAITING_S: Final = 0.1

_HIDES_DATA: Final = frozenset(
    {"written_without_writes", "read_without_reads", "asynchronous", "stream_buffered", "other_api", "module_off"}
)
_REMOVES: Final = frozenset({"unlink", "unlinkat", "remove", "rmdir"})


def _file_per_process(run: Workload) -> Seen | None:
    many = max(FILES, run.profile.workflow.processes / 2)
    rows = [
        (at, row)
        for at, row in run.names
        if not row.shared
        and row.files >= many
        # Which process reads which small file is often chance, but which one creates it is not.
        and ((row.writers or 0) >= many or ((row.processes or 0) >= many and not _is_small(row)))
    ]
    moved = sum(bytes_of(row) for _, row in rows)
    if not rows or not moved or moved < NOTABLE * run.moved:
        return None
    return run.in_names(rows, "files", "processes", "bytes.total")


def _one_process_moves_all(run: Workload) -> Seen | None:
    return run.in_apps(
        [at for at, app in enumerate(run.profile.apps) if is_funnel(app, run.profile)],
        "processes", "balance.writing_processes", "balance.busiest_bytes", "io.bytes.written",
    )  # fmt: skip


def _imbalance(run: Workload) -> Seen | None:
    return run.in_apps(
        [at for at, app in enumerate(run.profile.apps) if _is_uneven(app, run.profile)],
        "balance.busiest_bytes", "balance.mean_bytes", "balance.slowest_io_time_s", "balance.mean_io_time_s",
    )  # fmt: skip


def _is_uneven(app: App, profile: Profile) -> bool:
    balance = app.balance
    if balance is None or app.processes < 2 * app.instances or are_plain(app, profile):
        return False
    # Aggregators move the bytes of others, and one process that writes everything is a separate pattern.
    if gathers(app, profile) or moves_collectively(app, profile) or is_funnel(app, profile):
        return False
    more_bytes = balance.busiest_bytes - balance.mean_bytes
    if more_bytes >= FUNNEL_BYTES and more_bytes > UNEVEN_BYTES * balance.busiest_bytes:
        return True
    slowest, mean = balance.slowest_io_time_s or 0.0, balance.mean_io_time_s or 0.0
    return slowest - mean >= WAITING_S and slowest >= UNEVEN_TIMES * mean


def _many_small_files(run: Workload) -> Seen | None:
    small = [(at, row) for at, row in run.names if _is_small(row)]
    files = sum(row.files for _, row in small)
    if files < SMALL_FILES or files < MOST * sum(row.files for _, row in run.names):
        return None
    most = max(row.files for _, row in small)
    # A script or an index of the data set is small, too, but there are few of these.
    return run.in_names([(at, row) for at, row in small if 10 * row.files >= most], "files", "bytes.total", "opens")


def _metadata_bound(run: Workload) -> Seen | None:
    io = run.profile.workflow.io
    served = (io.time_s.metadata or 0.0) * data_files.share_of([io], data_files.SERVED)
    return _in_metadata(run, io.ops.metadata, served, "workflow.io.ops.metadata", "workflow.io.time_s.metadata")


def _stat_bound(run: Workload) -> Seen | None:
    kinds = run.profile.workflow.io.metadata_kinds
    if kinds is None:
        return None
    where = "workflow.io.metadata_kinds.stat"
    return _in_metadata(run, kinds.stat.count, kinds.stat.time_s, f"{where}.count", f"{where}.time_s")


def _remove_bound(run: Workload) -> Seen | None:
    calls = run.profile.workflow.io.calls or ()
    removes = [(at, call) for at, call in enumerate(calls) if call.name in _REMOVES]
    return _in_metadata(
        run,
        sum(call.count for _, call in removes),
        sum(call.time_s or 0.0 for _, call in removes),
        *(f"workflow.io.calls[{at}].{name}" for at, _ in removes[:_SHOWN] for name in ("name", "count", "time_s")),
    )


def _in_metadata(run: Workload, count: int, time_s: float | None, *attributes: str) -> Seen | None:
    """The pattern, if a kind of metadata operation takes most of the I/O time."""
    if run.misses(_HIDES_DATA):
        return None
    if count < REQUESTS or not time_s or time_s < MOST * run.io_s:
        return None
    return run.in_job(*attributes, "workflow.io.time_s.total", time_s=time_s)


def _stat_storm(run: Workload) -> Seen | None:
    kinds = run.profile.workflow.io.metadata_kinds
    if kinds is None or kinds.stat.count < max(REQUESTS, NOTABLE * run.profile.workflow.io.ops.all):
        return None
    if kinds.stat.count <= STATS_PER_OPEN * kinds.open.count:
        return None
    where = "workflow.io.metadata_kinds"
    return run.in_job(f"{where}.stat.count", f"{where}.open.count", time_s=kinds.stat.time_s)


def _flush_bound(run: Workload) -> Seen | None:
    io = run.profile.workflow.io
    if not io.time_s.sync or io.time_s.sync < MOST * run.io_s:
        return None
    return run.in_job("workflow.io.ops.sync", "workflow.io.time_s.sync", time_s=io.time_s.sync)


def _sieving(run: Workload) -> Seen | None:
    sieved = [i for i in run.items if (Traffic.on(run.profile, [i.path]).sieving or 0.0) >= AMPLIFICATION]
    return run.much(sieved, "io.bytes.total")


def _library_waiting(run: Workload) -> Seen | None:
    times = run.profile.workflow.library_time_s or {}
    # The time of the outermost library includes the others.
    name = max(times, key=lambda layer: times[layer].total, default=None)
    if name is None or times[name].outside_file_system < max(WAITING_S, MOST * times[name].total):
        return None
    where = f"workflow.library_time_s.{name}"
    return run.in_job(f"{where}.outside_file_system", f"{where}.total")


def _memory_mapped(run: Workload) -> Seen | None:
    for at, entry in enumerate(run.profile.unseen or ()):
        paths = [path for path in entry.files if data_files.is_data(path)]
        if entry.kind == "memory_mapped" and (paths or not entry.files):
            target = Target(kind="file", path=paths[0]) if paths else Target(kind="job")
            return Seen(target, [f"unseen[{at}].kind", f"unseen[{at}].count"], None)
    return None


def _locking(run: Workload) -> Seen | None:
    locks = run.profile.locks or ()
    if not locking(run.profile):
        return None
    paths = [f"locks[{at}].{name}" for at in range(len(locks)) for name in ("call", "calls", "time_s")]
    return run.in_job(*paths, time_s=sum(lock.time_s or 0.0 for lock in locks))


def _environment_startup(run: Workload) -> Seen | None:
    rows = [row for row in enumerate(run.profile.patterns or ()) if data_files.is_software(row[1].pattern)]
    if sum(row.files for _, row in rows) < SMALL_FILES:
        return None
    seen = run.in_names(rows, "files", "opens", "processes")
    opens = sum(row.opens for row in run.profile.patterns or ())
    share = sum(row.opens for _, row in rows) / max(1, opens) if seen.share is None else seen.share
    return seen if share >= NOTABLE else None


def _is_small(row: NamePattern) -> bool:
    """True for files where each open moves some bytes, but at most a stripe."""
    return 0 < bytes_of(row) <= SMALL_FILE * max(row.opens, row.files)


RUN_PATTERNS: Final[Mapping[str, Pattern]] = {
    "file_per_process": (_file_per_process, ("LUS003", "GPF002", "GPF003", "MIO006", "BB004")),
    "one_process_moves_all": (_one_process_moves_all, ("POS004",)),
    "imbalance": (_imbalance, ("POS006",)),
    "many_small_files": (_many_small_files, ("FLD001", "FLD003", "LUS006", "LUS007", "GPF002", "GPF003")),
    "metadata_bound": (_metadata_bound, ("FLD001", "POS003", "LUS006", "LUS007", "HD5003")),
    "stat_bound": (_stat_bound, ("FLD002", "POS003", "LUS007")),
    "remove_bound": (_remove_bound, ("FLD001", "LUS007", "GPF002")),
    "stat_storm": (_stat_storm, ("FLD002", "POS003")),
    "flush_bound": (_flush_bound, ("POS010",)),
    "sieving": (_sieving, ("MIO001", "MIO003")),
    "library_waiting": (_library_waiting, ("MIO001", "MIO002")),
    "memory_mapped": (_memory_mapped, ()),
    "locking": (_locking, ()),
    "environment_startup": (_environment_startup, ("FLD002",)),
    "library_search": (partial(_searching, kind="library_search"), ("FLD002",)),
    "newest_file_search": (partial(_searching, kind="newest_file_search"), ("POS003",)),
    "outputs_checked_again": (partial(_searching, kind="outputs_checked_again"), ("POS003",)),
}
"""The function that detects each pattern, and the rules that act on it."""


PATTERNS: Final[Mapping[str, Pattern]] = {**FILE_PATTERNS, **RUN_PATTERNS}
"""The function that detects each pattern, and the rules that act on it."""


def diagnosis(profile: Profile) -> list[Observation]:
    """All patterns that the profile shows, the one with the largest share of the I/O time first.

    A pure function. An entry names the costliest place with the pattern, but its share covers all such places.
    """
    run = Workload(profile)
    observations = []
    for name, (see, rules) in PATTERNS.items():
        if (seen := see(run)) is None:
            continue
        values = ((path, value_at(profile, path)) for path in seen.attributes)
        evidence = [Evidence(attribute=path, value=value) for path, value in values if value is not None]
        observations.append(
            Observation(pattern=name, target=seen.target, evidence=evidence, share=seen.share, rules=list(rules))
        )
    if observations:
        return sorted(observations, key=lambda entry: -(entry.share or 0.0))
    # The remarkable activity may be unrecorded.
    if profile.unseen or not profile.workflow.io.ops.all:
        return []
    evidence = [Evidence(attribute="workflow.io.bytes.total", value=profile.workflow.io.bytes.total)]
    return [
        Observation(pattern="nothing_remarkable", target=Target(kind="job"), evidence=evidence, share=None, rules=[])
    ]
