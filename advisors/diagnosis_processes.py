"""Diagnosis patterns of the whole run: its processes, folders, metadata, flushing and libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import is_data, is_software
from vani.advisors.diagnosis_run import MOST, NOTABLE, REQUESTS, Pattern, Run, Seen, bytes_of
from vani.advisors.metadata import SERVED, may_include_flushing, share_of
from vani.advisors.movers import FUNNEL_BYTES, are_plain, gathers, is_funnel, moves_collectively
from vani.schema.advice import Target
from vani.units import MiB

if TYPE_CHECKING:
    from vani.schema.profile import App, NamePattern, Profile

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
_SHOWN: Final = 3


def _file_per_process(run: Run) -> Seen | None:
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
    # Aggregators move the bytes of others, and one process that writes everything is a separate pattern.
    if gathers(app, profile) or moves_collectively(app, profile) or is_funnel(app, profile):
        return False
    more_bytes = balance.busiest_bytes - balance.mean_bytes
    if more_bytes >= FUNNEL_BYTES and more_bytes > UNEVEN_BYTES * balance.busiest_bytes:
        return True
    slowest, mean = balance.slowest_io_time_s or 0.0, balance.mean_io_time_s or 0.0
    return slowest - mean >= WAITING_S and slowest >= UNEVEN_TIMES * mean


def _many_small_files(run: Run) -> Seen | None:
    small = [(at, row) for at, row in run.names if _is_small(row)]
    files = sum(row.files for _, row in small)
    if files < SMALL_FILES or files < MOST * sum(row.files for _, row in run.names):
        return None
    most = max(row.files for _, row in small)
    # A script or an index of the data set is small, too, but there are few of these.
    return run.in_names([(at, row) for at, row in small if 10 * row.files >= most], "files", "bytes.total", "opens")


def _metadata_bound(run: Run) -> Seen | None:
    io = run.profile.workflow.io
    served = (io.time_s.metadata or 0.0) * share_of([io], SERVED)
    return _in_metadata(run, io.ops.metadata, served, "workflow.io.ops.metadata", "workflow.io.time_s.metadata")


def _stat_bound(run: Run) -> Seen | None:
    kinds = run.profile.workflow.io.metadata_kinds
    if kinds is None:
        return None
    where = "workflow.io.metadata_kinds.stat"
    return _in_metadata(run, kinds.stat.count, kinds.stat.time_s, f"{where}.count", f"{where}.time_s")


def _remove_bound(run: Run) -> Seen | None:
    calls = run.profile.workflow.io.calls or ()
    removes = [(at, call) for at, call in enumerate(calls) if call.name in _REMOVES]
    return _in_metadata(
        run,
        sum(call.count for _, call in removes),
        sum(call.time_s or 0.0 for _, call in removes),
        *(f"workflow.io.calls[{at}].{name}" for at, _ in removes[:_SHOWN] for name in ("name", "count", "time_s")),
    )


def _in_metadata(run: Run, count: int, time_s: float | None, *attributes: str) -> Seen | None:
    """The pattern, if a kind of metadata operation takes most of the I/O time."""
    if may_include_flushing(run.profile) or run.misses(_HIDES_DATA):
        return None
    if count < REQUESTS or not time_s or time_s < MOST * run.io_s:
        return None
    return run.in_job(*attributes, "workflow.io.time_s.total", time_s=time_s)


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


def _sieving(run: Run) -> Seen | None:
    layers = [
        (at, layer)
        for at, layer in enumerate(run.profile.interfaces or ())
        if layer.layer == "mpiio"
        and layer.amplification is not None
        and (layer.amplification.total or 0.0) >= AMPLIFICATION
    ]
    if not layers:
        return None
    at, layer = max(layers, key=lambda row: row[1].bytes.total or 0)
    paths = [f"interfaces[{at}].{name}" for name in ("asked.total", "bytes.total", "amplification.total")]
    return Seen(Target(kind="app", app=layer.app), paths, None)


def _library_waiting(run: Run) -> Seen | None:
    times = run.profile.workflow.library_time_s or {}
    # The time of the outermost library includes the others.
    name = max(times, key=lambda layer: times[layer].total, default=None)
    if name is None or times[name].outside_file_system < max(WAITING_S, MOST * times[name].total):
        return None
    where = f"workflow.library_time_s.{name}"
    return run.in_job(f"{where}.outside_file_system", f"{where}.total")


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
    "environment_startup": (_environment_startup, ("FLD002",)),
}
"""The function that detects each pattern, and the rules that act on it."""
