"""Diagnosis patterns of single files: sizes and offsets of requests, sharing of files, interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, extent
from vani.advisors.diagnosis_run import (
    MOST,
    NOTABLE,
    REQUESTS,
    Pattern,
    Run,
    Seen,
    flushes_of,
    is_tiny,
    moved_in,
    one_way,
    requests_of,
    small_share_of,
    writes_of,
)
from vani.advisors.movers import are_plain
from vani.advisors.small_requests import SMALL, sizes_of
from vani.units import KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import IOStats

RANDOM: Final = 0.2
OPENS: Final = 10
LOOKS: Final = 100
FLUSHES: Final = 100
TIMES: Final = 2.0
PAGE: Final = 4 * KiB
RPC: Final = MiB
COLLECTIVE_BUFFER: Final = 16 * MiB
LARGE_FILE: Final = 64 * MiB

_ABOVE_POSIX: Final = frozenset({"mpiio", "pnetcdf", "hdf5", "netcdf"})
_HIDES_LIBRARIES: Final = frozenset({"mpiio_calls_missing", "module_off", "module_partial"})
_READS: Final = frozenset({"read", "pread", "pread64", "readv", "fread"})
_SHOWN: Final = 3


def _small_requests(run: Run) -> Seen | None:
    small, count = [], 0.0
    for item in run.items:
        if is_tiny(item):
            continue
        shares = {reads: small_share_of(item, reads=reads) for reads in (True, False)}
        if max(shares.values()) >= MOST:
            small.append(item)
            count += sum(share * one_way(item, reads=reads) for reads, share in shares.items() if share >= MOST)
    if not small or not run.are_many(count):
        return None
    return run.in_files(small, "io.ops.read", "io.ops.write", "io.transfer_size.read.p50", "io.transfer_size.write.p50")


def _random_access(run: Run) -> Seen | None:
    return _by_place(run, "random", RANDOM, run.items)


def _strided_access(run: Run) -> Seen | None:
    return _by_place(run, "strided", MOST, [item for item in run.items if item not in run.shared])


def _interleaved_access(run: Run) -> Seen | None:
    return _by_place(run, "strided", MOST, run.shared)


def _by_place(run: Run, kind: str, least: float, among: Sequence[Item]) -> Seen | None:
    """The files in which at least a share `least` of the requests has offsets of a kind."""
    shares = {
        item: getattr(item.file.io.access_pattern, kind)
        for item in among
        if item.file.io.access_pattern is not None and not is_tiny(item)
    }
    items = [item for item, share in shares.items() if share >= least]
    if not items or not run.are_many(sum(requests_of(item) * shares[item] for item in items)):
        return None
    return run.in_files(items, f"io.access_pattern.{kind}", "io.ops.read", "io.ops.write", "stride", "processes")


def _shared_file(run: Run) -> Seen | None:
    return run.in_files(run.shared, "readers", "writers", "io.bytes.total") if run.moves_much(run.shared) else None


def _one_target(run: Run) -> Seen | None:
    if {mount.targets for mount in run.profile.storage.mounts or () if mount.type == "lustre"} == {1}:
        return None
    items = [item for item in run.shared if item.file.stripe_count == 1 and (extent(item.file) or 0) >= LARGE_FILE]
    return run.in_files(items, "stripe_count", "size", "readers", "writers") if run.moves_much(items) else None


def _direct_io(run: Run) -> Seen | None:
    direct = [item for item in run.items if item.file.direct_opens]
    return run.in_files(direct, "direct_opens", "opens", "io.bytes.total") if run.moves_much(direct) else None


def _synchronous_writes(run: Run) -> Seen | None:
    waiting = [item for item in run.items if item.file.synchronous_opens and writes_of(item)]
    if sum(map(writes_of, waiting)) < FLUSHES:
        return None
    return run.in_files(waiting, "synchronous_opens", "io.ops.write")


def _polling(run: Run) -> Seen | None:
    polled = [item for item in run.items if _is_polled(item)]
    if not polled:
        return None
    return run.in_files(
        polled, "opens", "io.metadata_kinds.stat.count", "io.ops.read", "io.footprint.read", "processes"
    )


def _is_polled(item: Item) -> bool:
    """True if each process looks at a file repeatedly and finds little or nothing in it."""
    io = item.file.io
    looks = item.file.opens + (io.metadata_kinds.stat.count if io.metadata_kinds is not None else 0)
    distinct = io.footprint.read if io.footprint.read is not None else io.bytes.read
    if (distinct or 0) >= SMALL:
        # A process that waits for new data reads at the end of the file and gets no bytes.
        looks = 0
    looks += _empty_reads(io)
    return looks >= LOOKS * max(1, item.file.processes) and io.ops.write + (io.ops.sync or 0) < MOST * looks


def _empty_reads(io: IOStats) -> int:
    """Reads that return nothing. Sources with return values do not count them; others count them as past the end."""
    got = (io.bytes.read or 0) - (io.past_end.read or 0)
    past_end = io.ops.read if got < io.ops.read else 0
    return past_end + max(0, sum(call.count for call in io.calls or () if call.name in _READS) - io.ops.read)


def _repeated_open(run: Run) -> Seen | None:
    again = [item for item in run.items if item.file.opens >= OPENS * max(1, item.file.processes)]
    if not again or sum(item.file.opens * item.part.opens for item in again) < REQUESTS:
        return None
    return run.in_files(again, "opens", "processes")


def _flush_after_each_write(run: Run) -> Seen | None:
    flushed = [item for item in run.items if writes_of(item) and flushes_of(item) >= MOST * writes_of(item)]
    if not flushed or sum(map(flushes_of, flushed)) < FLUSHES:
        return None
    return run.in_files(flushed, "io.ops.write", "io.ops.sync")


def _reread(run: Run) -> Seen | None:
    again = [item for item in run.items if _is_repeated(item.file.io.bytes.read, item.file.io.footprint.read)]
    return run.in_files(again, "io.bytes.read", "io.footprint.read") if run.moves_much(again) else None


def _rewritten(run: Run) -> Seen | None:
    again = [item for item in run.items if _is_repeated(item.file.io.bytes.written, item.file.io.footprint.written)]
    return run.in_files(again, "io.bytes.written", "io.footprint.written") if run.moves_much(again) else None


def _reads_past_end(run: Run) -> Seen | None:
    beyond = [
        item
        for item in run.items
        if (past := item.file.io.past_end.read) and past >= NOTABLE * (item.file.io.bytes.read or 0)
    ]
    return run.in_files(beyond, "io.past_end.read", "io.bytes.read") if run.moves_much(beyond) else None


def _misaligned(run: Run) -> Seen | None:
    # A smaller file takes one request or a few.
    odd = {item: _odd_requests(item) for item in run.items if (extent(item.file) or 0) >= MiB}
    items = [item for item, count in odd.items() if count >= MOST * requests_of(item) > 0]
    if not items or not run.are_many(sum(odd[item] for item in items)):
        return None
    return run.in_files(items, "io.transfer_size.read.p50", "io.transfer_size.write.p50", "io.ops.read", "io.ops.write")


def _independent_io(run: Run) -> Seen | None:
    shared = [item for item in run.shared if item.file.interface in _ABOVE_POSIX and _can_be_joined(item)]
    apps = {name for item in shared for name in item.file.apps}
    layers = [
        at
        for at, layer in enumerate(run.profile.interfaces or ())
        if layer.layer == "mpiio"
        and layer.app in apps
        and (layer.collective_share < MOST if layer.collective_share is not None else layer.transfer == "independent")
    ]
    if not layers or not run.moves_much(shared):
        return None
    seen = run.in_files(shared, "readers", "writers")
    paths = [f"interfaces[{at}].{name}" for at in layers[:_SHOWN] for name in ("app", "collective_share", "transfer")]
    return seen._replace(attributes=[*paths, *seen.attributes])


def _can_be_joined(item: Item) -> bool:
    """True if most reads or writes are smaller than a collective buffer, so that joining them helps."""
    return any(small_share_of(item, reads=reads, limit=COLLECTIVE_BUFFER) >= MOST for reads in (True, False))


def _low_level_interface(run: Run) -> Seen | None:
    # The program may call the library without the trace showing it.
    if run.misses(_HIDES_LIBRARIES):
        return None
    plain = {app.name for app in run.profile.apps if are_plain(app, run.profile)}
    items = [
        item for item in run.shared if item.file.interface in ("posix", "stdio") and plain.isdisjoint(item.file.apps)
    ]
    return run.in_files(items, "interface", "readers", "writers") if run.moves_much(items) else None


def _stdio_bulk_data(run: Run) -> Seen | None:
    streams = [item for item in run.items if item.file.interface == "stdio"]
    if sum(map(moved_in, streams)) < MiB or not run.moves_much(streams):
        return None
    return run.in_files(streams, "interface", "io.bytes.total")


def _is_repeated(moved: int | None, distinct: int | None) -> bool:
    return bool(moved and distinct) and (moved or 0) >= max(MiB, TIMES * (distinct or 0))


def _odd_requests(item: Item) -> float:
    """Lower bound of the requests from a page to an RPC whose size is not a multiple of a page."""
    count = 0.0
    for reads in (True, False):
        sizes = sizes_of(item.file.io, reads=reads)
        odd = sum(number for size, number in sizes.common if PAGE < size < RPC and size % PAGE) if sizes else 0
        count += odd * (item.part.reads if reads else item.part.writes)
    return count


FILE_PATTERNS: Final[Mapping[str, Pattern]] = {
    "small_requests": (_small_requests, ("POS002", "POS009", "MIO001", "HD5002", "HD5006")),
    "random_access": (_random_access, ("POS005", "LUS008")),
    "strided_access": (_strided_access, ("POS002", "FWD003")),
    "interleaved_access": (_interleaved_access, ("POS009", "MIO001", "LUS004", "GPF004")),
    "shared_file": (_shared_file, ("LUS002", "LUS004", "LUS008", "BEE001", "GPF004", "MIO004")),
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
