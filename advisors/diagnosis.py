"""The program's behaviour as observations from a closed list, whether or not it costs time: `docs/diagnosis.md`.

An observation is true or false: it has no severity. Each pattern is one function of a `Run` that answers with a
`Seen` or None, and one line of `PATTERNS`. Thresholds and their sources are in `docs/diagnosis.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, extent, is_data, is_software
from vani.advisors.diagnosis_run import (
    NOTABLE,
    REQUESTS,
    Run,
    Seen,
    bytes_of,
    flushes_of,
    is_tiny,
    moved_in,
    one_way,
    requests_of,
    small_share_of,
    value_at,
    writes_of,
)
from vani.advisors.metadata import SERVED, may_hold_flushing, share_of
from vani.advisors.movers import FUNNEL_BYTES, are_plain, gathers, is_funnel
from vani.advisors.small_requests import sizes_of
from vani.schema.advice import Evidence, Observation, Target
from vani.units import KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import App, NamePattern, Profile

__all__ = ["PATTERNS", "diagnosis"]

MOST: Final = 0.5
RANDOM: Final = 0.2
UNEVEN_BYTES: Final = 0.3
UNEVEN_TIMES: Final = 2.0
SMALL_FILES: Final = 100
SMALL_FILE: Final = MiB
OPENS: Final = 10
STATS_PER_OPEN: Final = 2
FLUSHES: Final = 100
TIMES: Final = 2.0
PAGE: Final = 4 * KiB
WAITING_S: Final = 0.1

_ABOVE_POSIX: Final = frozenset({"mpiio", "pnetcdf", "hdf5", "netcdf"})
_HIDES_LIBRARIES: Final = frozenset({"mpiio_calls_missing", "module_off", "module_partial"})
_HIDES_DATA: Final = frozenset(
    {"written_without_writes", "read_without_reads", "asynchronous", "stream_buffered", "other_api", "module_off"}
)
_SHOWN: Final = 3


def diagnosis(profile: Profile) -> list[Observation]:
    """Every pattern that the profile shows, those with the largest share of the I/O time first.

    Pure. An entry names the costliest place where the pattern was seen; its share is that of all of them.
    """
    run = Run(profile)
    observations = []
    for name, (see, rules) in PATTERNS.items():
        seen = see(run)
        if seen is not None:
            observations.append(
                Observation(
                    pattern=name,
                    target=seen.target,
                    evidence=[
                        Evidence(attribute=path, value=value)
                        for path in seen.attributes
                        if (value := value_at(profile, path)) is not None
                    ],
                    share=seen.share,
                    rules=list(rules),
                )
            )
    if observations:
        return sorted(observations, key=lambda entry: -(entry.share or 0.0))
    # What was not recorded may be remarkable.
    if profile.unseen or not profile.workflow.io.ops.all:
        return []
    evidence = [Evidence(attribute="workflow.io.bytes.total", value=profile.workflow.io.bytes.total)]
    return [
        Observation(pattern="nothing_remarkable", target=Target(kind="job"), evidence=evidence, share=None, rules=[])
    ]


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
    return run.in_files(
        small, "io.ops.read", "io.ops.write", "io.transfer_size.read.p50", "io.transfer_size.write.p50"
    )


def _random_access(run: Run) -> Seen | None:
    return _by_place(run, "random", RANDOM, run.items)


def _strided_access(run: Run) -> Seen | None:
    return _by_place(run, "strided", MOST, [item for item in run.items if item not in run.shared])


def _interleaved_access(run: Run) -> Seen | None:
    return _by_place(run, "strided", MOST, run.shared)


def _by_place(run: Run, kind: str, least: float, among: Sequence[Item]) -> Seen | None:
    """Files among these of which at least a share `least` of the requests begin at places of a kind."""
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


def _file_per_process(run: Run) -> Seen | None:
    many = max(2, run.profile.workflow.processes / 2)
    rows = [
        (at, row)
        for at, row in run.names
        if not row.shared
        and row.files >= many
        # Which process reads which small file is often chance; making one is not.
        and ((row.writers or 0) >= many or ((row.processes or 0) >= many and not _is_small(row)))
    ]
    moved = sum(bytes_of(row) for _, row in rows)
    if not rows or not moved or moved < NOTABLE * run.moved:
        return None
    return run.in_names(rows, "files", "processes", "bytes.total")


def _one_process_moves_all(run: Run) -> Seen | None:
    return run.in_apps(
        [at for at, app in enumerate(run.profile.apps) if is_funnel(app, run.profile)],
        "processes", "balance.writing_processes", "balance.busiest_bytes", "io.bytes.written",
    )  # fmt: skip


def _imbalance(run: Run) -> Seen | None:
    return run.in_apps(
        [at for at, app in enumerate(run.profile.apps) if _is_uneven(app, run.profile)],
        "balance.busiest_bytes", "balance.mean_bytes", "balance.slowest_io_time_s", "balance.mean_io_time_s",
    )  # fmt: skip


def _is_uneven(app: App, profile: Profile) -> bool:
    balance = app.balance
    if balance is None or app.processes < 2 * app.instances or are_plain(app, profile):
        return False
    # Aggregators move the bytes of others, and a process that writes all is a pattern of its own.
    if gathers(app, profile) or _is_collective(app, profile) or is_funnel(app, profile):
        return False
    more_bytes = balance.busiest_bytes - balance.mean_bytes
    if more_bytes >= FUNNEL_BYTES and more_bytes > UNEVEN_BYTES * balance.busiest_bytes:
        return True
    slowest, mean = balance.slowest_io_time_s or 0.0, balance.mean_io_time_s or 0.0
    return slowest - mean >= WAITING_S and slowest >= UNEVEN_TIMES * mean


def _is_collective(app: App, profile: Profile) -> bool:
    """True if most bytes of an app move through MPI-IO whose calls are mostly collective, reads as well as writes."""
    return any(
        layer.app == app.name
        and (layer.collective_share or 0.0) >= MOST
        and (layer.bytes.total or 0) >= MOST * (app.io.bytes.total or 0)
        for layer in profile.interfaces or ()
    )


def _many_small_files(run: Run) -> Seen | None:
    small = [(at, row) for at, row in run.names if _is_small(row)]
    files = sum(row.files for _, row in small)
    if files < SMALL_FILES or files < MOST * sum(row.files for _, row in run.names):
        return None
    return run.in_names(small, "files", "bytes.total", "opens")


def _metadata_bound(run: Run) -> Seen | None:
    io = run.profile.workflow.io
    if may_hold_flushing(run.profile) or run.misses(_HIDES_DATA):
        return None
    if not io.time_s.metadata or io.ops.metadata < REQUESTS:
        return None
    served = io.time_s.metadata * share_of([io], SERVED)
    if served < MOST * run.io_s:
        return None
    times = "workflow.io.time_s"
    return run.in_job("workflow.io.ops.metadata", f"{times}.metadata", f"{times}.total", time_s=served)


def _repeated_open(run: Run) -> Seen | None:
    again = [item for item in run.items if item.file.opens >= OPENS * max(1, item.file.processes)]
    if not again or sum(item.file.opens * item.part.opens for item in again) < REQUESTS:
        return None
    return run.in_files(again, "opens", "processes")


def _stat_storm(run: Run) -> Seen | None:
    kinds = run.profile.workflow.io.metadata_kinds
    if kinds is None or kinds.stat.count < max(REQUESTS, NOTABLE * run.profile.workflow.io.ops.all):
        return None
    if kinds.stat.count <= STATS_PER_OPEN * kinds.open.count:
        return None
    where = "workflow.io.metadata_kinds"
    return run.in_job(f"{where}.stat.count", f"{where}.open.count", time_s=kinds.stat.time_s)


def _flush_bound(run: Run) -> Seen | None:
    io = run.profile.workflow.io
    if not io.time_s.sync or io.time_s.sync < MOST * run.io_s:
        return None
    return run.in_job("workflow.io.ops.sync", "workflow.io.time_s.sync", time_s=io.time_s.sync)


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
    # A smaller file is one whole request, or a few.
    odd = {item: _odd_requests(item) for item in run.items if (extent(item.file) or 0) >= MiB}
    items = [item for item, count in odd.items() if count >= MOST * requests_of(item) > 0]
    if not items or not run.are_many(sum(odd[item] for item in items)):
        return None
    return run.in_files(items, "io.transfer_size.read.p50", "io.transfer_size.write.p50", "io.ops.read", "io.ops.write")


def _independent_io(run: Run) -> Seen | None:
    shared = [item for item in run.shared if item.file.interface in _ABOVE_POSIX]
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


def _sieving(run: Run) -> Seen | None:
    layers = [
        (at, layer)
        for at, layer in enumerate(run.profile.interfaces or ())
        if layer.layer == "mpiio" and layer.amplification is not None and (layer.amplification.total or 0.0) >= TIMES
    ]
    if not layers:
        return None
    at, layer = max(layers, key=lambda row: row[1].bytes.total or 0)
    paths = [f"interfaces[{at}].{name}" for name in ("asked.total", "bytes.total", "amplification.total")]
    return Seen(Target(kind="app", app=layer.app), paths, None)


def _library_waiting(run: Run) -> Seen | None:
    times = run.profile.workflow.library_time_s or {}
    # The outermost library surrounds the others.
    name = max(times, key=lambda layer: times[layer].total, default=None)
    if name is None or times[name].outside_file_system < max(WAITING_S, MOST * times[name].total):
        return None
    where = f"workflow.library_time_s.{name}"
    return run.in_job(f"{where}.outside_file_system", f"{where}.total")


def _low_level_interface(run: Run) -> Seen | None:
    # The library's calls may be there, and not in the trace.
    if run.misses(_HIDES_LIBRARIES):
        return None
    plain = {app.name for app in run.profile.apps if are_plain(app, run.profile)}
    items = [
        item
        for item in run.shared
        if item.file.interface in ("posix", "stdio") and plain.isdisjoint(item.file.apps)
    ]
    return run.in_files(items, "interface", "readers", "writers") if run.moves_much(items) else None


def _stdio_bulk_data(run: Run) -> Seen | None:
    streams = [item for item in run.items if item.file.interface == "stdio"]
    if sum(map(moved_in, streams)) < MiB or not run.moves_much(streams):
        return None
    return run.in_files(streams, "interface", "io.bytes.total")


def _memory_mapped(run: Run) -> Seen | None:
    for at, entry in enumerate(run.profile.unseen or ()):
        paths = [path for path in entry.files if is_data(path)]
        if entry.kind == "memory_mapped" and (paths or not entry.files):
            target = Target(kind="file", path=paths[0]) if paths else Target(kind="job")
            return Seen(target, [f"unseen[{at}].kind", f"unseen[{at}].count"], None)
    return None


def _environment_startup(run: Run) -> Seen | None:
    rows = [row for row in enumerate(run.profile.patterns or ()) if is_software(row[1].pattern)]
    if sum(row.files for _, row in rows) < SMALL_FILES:
        return None
    seen = run.in_names(rows, "files", "opens", "processes")
    opens = sum(row.opens for row in run.profile.patterns or ())
    share = sum(row.opens for _, row in rows) / max(1, opens) if seen.share is None else seen.share
    return seen if share >= NOTABLE else None


def _is_small(row: NamePattern) -> bool:
    """Files of which each opening moves no more than a stripe, and something."""
    return 0 < bytes_of(row) <= SMALL_FILE * max(row.opens, row.files)


def _is_repeated(moved: int | None, distinct: int | None) -> bool:
    return bool(moved and distinct) and (moved or 0) >= max(MiB, TIMES * (distinct or 0))


def _odd_requests(item: Item) -> float:
    """Requests of a page or more whose size is not a multiple of one: a lower bound."""
    count = 0.0
    for reads in (True, False):
        sizes = sizes_of(item.file.io, reads=reads)
        odd = sum(number for size, number in sizes.common if size > PAGE and size % PAGE) if sizes else 0
        count += odd * (item.part.reads if reads else item.part.writes)
    return count


PATTERNS: Final[Mapping[str, tuple[Callable[[Run], Seen | None], tuple[str, ...]]]] = {
    "small_requests": (_small_requests, ("POS002", "POS009", "MIO001", "HD5002", "HD5006")),
    "random_access": (_random_access, ("POS005", "LUS008")),
    "strided_access": (_strided_access, ("POS002", "FWD003")),
    "interleaved_access": (_interleaved_access, ("POS009", "MIO001", "LUS004", "GPF004")),
    "shared_file": (_shared_file, ("LUS002", "LUS004", "LUS008", "BEE001", "GPF004", "MIO004")),
    "file_per_process": (_file_per_process, ("LUS003", "GPF002", "GPF003", "MIO006", "BB004")),
    "one_process_moves_all": (_one_process_moves_all, ("POS004",)),
    "imbalance": (_imbalance, ("POS006",)),
    "many_small_files": (_many_small_files, ("FLD001", "FLD003", "LUS006", "LUS007", "GPF002", "GPF003")),
    "metadata_bound": (_metadata_bound, ("FLD001", "POS003", "LUS006", "LUS007", "HD5003")),
    "repeated_open": (_repeated_open, ("POS003",)),
    "stat_storm": (_stat_storm, ("FLD002", "POS003")),
    "flush_bound": (_flush_bound, ("POS010",)),
    "flush_after_each_write": (_flush_after_each_write, ("POS010",)),
    "reread": (_reread, ("POS001", "POS011", "BB001", "HD5004")),
    "rewritten": (_rewritten, ("POS011",)),
    "reads_past_end": (_reads_past_end, ("POS008",)),
    "misaligned": (_misaligned, ("LUS001", "GPF001", "HD5001")),
    "independent_io": (_independent_io, ("MIO001", "HD5005")),
    "sieving": (_sieving, ("MIO001", "MIO003")),
    "library_waiting": (_library_waiting, ("MIO001", "MIO002")),
    "low_level_interface": (_low_level_interface, ("POS009",)),
    "stdio_bulk_data": (_stdio_bulk_data, ("POS012",)),
    "memory_mapped": (_memory_mapped, ()),
    "environment_startup": (_environment_startup, ("FLD002",)),
}
"""By name: the function that sees a pattern, and the rules that act on it."""
