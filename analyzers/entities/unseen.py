"""Activity that the trace proves but does not record (`profile.unseen`).

There are three kinds of evidence. Files: opened, but without data calls, or with a seek past all that was written to a
file that the run created. Names: functions and modules that move data, or start processes, without being traced.
Layers: data calls on files opened through MPI-IO, but outside MPI-IO data calls.

A file's missing calls cannot have taken longer than the file was open, unless it was mapped into memory, because a
mapping outlives the descriptor. So there is no such bound for a file whose length was set without a write (ftruncate,
then mmap), nor, if the tracer does not record mmap, for one that existed before the run. A new file is empty, and an
empty file cannot be mapped.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from vani.analyzers.entities.view import Notes, View
from vani.analyzers.int_table import NO_VALUE, IntTable, group, unpack
from vani.analyzers.measures.lengths import BeyondEnds, FileLengths
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.measures.operations import ASKED, FileBalance
from vani.calls import Kind, Layer
from vani.columns import Bools, Floats, Ints
from vani.counts import NotCounted
from vani.models.io_time import HARDLY
from vani.schema.profile import Unseen, UnseenKind
from vani.units import format_bytes

_LISTED: Final = 10
_FEW_PAGES: Final = 65_536
"""Bytes of mappings that no machine drops from memory while it has them (our choice)."""
_PAGE_S: Final = 0.01
"""Seconds in which a busy disk fetches or stores a page (general knowledge)."""
"""Most files that an entry names."""


def unseen_of_counts(missed: Iterable[tuple[str, NotCounted]]) -> list[Unseen]:
    """The entries, one per kind and cause, because several logs of a workload usually miss the same I/O.

    Parameters
    ----------
    missed
        Name of an app, and the I/O that its log did not count.
    """
    same: dict[tuple[str, str, str], list[NotCounted]] = {}
    for _, entry in missed:
        same.setdefault((entry.kind, entry.cause, entry.see_with), []).append(entry)
    return [
        Unseen(
            kind=entries[0].kind,
            files=list(dict.fromkeys(file for entry in entries for file in entry.files))[:_LISTED],
            count=len({what for entry in entries for what in entry.what}),
            cause=cause if len(entries) == 1 else f"{cause} (in {len(entries):,} logs)",
            see_with=see_with,
            most_s=None if any(entry.most_s is None for entry in entries) else sum(e.most_s or 0.0 for e in entries),
        )
        for (_, cause, see_with), entries in same.items()
    ]


_WORTH_A_LINE: Final = 0.1 * HARDLY
"""Share of the run: files without data calls that were open for less in total count as empty files if nothing else
is recorded."""
_BLOCK: Final = 4096
_NEVER: Final = np.iinfo(np.int64).max
_STRACE: Final = "vani trace --tracer strace -- PROGRAM, which records all system calls"
_BEYOND_STRACE: Final = "no tracer of system calls sees it: count bytes in the program, or read the device's counters"
_DARSHAN_OR_STRACE: Final = "vani trace --tracer strace -- PROGRAM, or a log of Darshan"

_DFTRACER: Final = "dftracer"

_FUNCTIONS: Final[tuple[tuple[UnseenKind, re.Pattern[str], str, str], ...]] = (
    (
        "asynchronous",
        re.compile(r"io_uring_\w+|io_submit|io_setup|aio_(?:read|write)(?:64)?|lio_listio(?:64)?"),
        "asynchronous I/O",
        "a log of Darshan for POSIX aio; io_uring and libaio show only in the program's own counters",
    ),
    ("copied_in_kernel", re.compile(r"copy_file_range|sendfile(?:64)?|splice"), "copies inside the kernel", _STRACE),
    (
        "other_api",
        re.compile(r"(?:dfs|daos)_\w+"),
        "DAOS calls",
        "Darshan 3.4 or newer with its DFS and DAOS modules",
    ),
    ("forked_processes", re.compile(r"v?fork|__clone\d?|posix_spawnp?"), "child processes", _STRACE),
)
"""Kind, function names, what they are, and how to trace them."""

_LATER: Final = re.compile(r"MPI_File_(?:i(?:read|write)\w*|\w+_begin)")
"""MPI-IO calls that return before their data has moved."""
_WORKERS: Final = re.compile(r"/multiprocessing/(?:__pycache__/)?popen_(?:fork|spawn_posix|forkserver)\b")
"""Modules that Python loads when multiprocessing starts a process."""


def unseen(view: View) -> tuple[list[Unseen] | None, Notes]:
    """The entries of `profile.unseen`: unbounded ones first, then by the time that they can have taken.

    None, with the reason, if the order of calls is unknown.
    """
    if not view.measured.survey.records_creation:
        return unseen_of_counts(view.measured.not_counted), {}
    if not view.timed:
        return None, {"unseen": view.no_times}
    mapped, growth = _mapped(view), _growth(view)
    entries = [*_by_functions(view), *_mappings(view, mapped, growth)]
    if _has_system_calls(view):
        # Children are traced, and a file without data calls that did not grow is an empty one.
        entries += _by_files(view, mapped, growth)
        entries = [entry.model_copy(update={"see_with": _BEYOND_STRACE}) for entry in entries]
    else:
        entries += [*_below_libraries(view), *_by_files(view, mapped, growth), *_workers(view)]
        entries += [*_outside_mpiio(view), *_launches(view), *_without_events(view)]
    return sorted(entries, key=lambda entry: (entry.most_s is not None, -(entry.most_s or 0.0))), {}


def _growth(view: View) -> dict[int, int]:
    """By file whose growth on disk is known: bytes by which it grew beyond its recorded writes, 0 if these explain it.

    A write may touch a part of the first and the last block of its place, which count as a whole on disk. Writes of
    unknown place or size may explain any growth.
    """
    after = {} if view.job is None else {file.path: file for file in view.job.files_after}
    codes = view.files[np.isin(np.array(view.workload.paths[:], object)[view.files], list(after))] if after else ()
    growth: dict[int, int] = {}
    for code in np.array(codes, np.int64).tolist():
        file, row = after[view.workload.paths[code]], np.array([code])
        written, writes, blind = (
            int(view.measured.survey.files.at(row, name)[0]) for name in ("bytes_written", "writes", "blind")
        )
        if file.allocated_before is None or blind:
            continue
        touched = view.file_stats[code].footprint.written if code in view.file_stats else None
        grown = min(file.size, file.allocated) - file.allocated_before - (written if touched is None else touched)
        growth[code] = grown if grown > 2 * _BLOCK * writes else 0
    return growth


def _by_files(view: View, mapped_files: Collection[int], growth: Mapping[int, int]) -> Iterator[Unseen]:
    survey, codes = view.measured.survey.files, view.files
    if not len(survey) or not len(codes):
        return
    reads, writes, writable, opens, streams, makes, empties, resizes, syncs = (
        survey.at(codes, name) > 0
        for name in ("reads", "writes", "writable", "opens", "stream_opens", "makes", "empties", "resizes", "syncs")
    )
    below = {(file, kind) for file, kind, _, _ in _asked_alone(view)}
    others = ~np.isin(codes, [*mapped_files, *(file for file, kind in below if kind == Kind.WRITE)])
    grown = np.array([growth.get(code, -1) for code in codes.tolist()], np.int64)
    silent = ~writes & (~reads | empties) & others
    sought = writes & _sought_past_end(view, survey, codes)
    past_end = sought | (writes & _read_past_end(view, codes))
    unread, unwritten, in_streams = np.zeros((3, len(codes)), np.bool_)
    open_s = _open_s(view, survey, codes)
    if _has_system_calls(view):
        # Every call is recorded: a file with a seek past its end, or without any write, is what it seems.
        writable &= grown >= 0
        opens, sought, past_end = (np.zeros(len(codes), np.bool_) for _ in range(3))
    elif (balance := view.measured.of(FileBalance)) is not None and not _names_processes(view):
        alone = survey.at(codes, "first_process") == survey.at(codes, "last_process")
        unread = (balance.idle.at(codes, "unread") > 0) & ~np.isin(codes, list(mapped_files))
        if not _calls_of(view, re.compile(r"MPI_File_\w+")):
            # MPI-IO, if it was not traced, opens a file in all processes and reads it in some.
            unread &= alone
        # Of files without any write, all openings count. Many processes open a file that one of them writes.
        written = writes & others & alone & (grown < 0)
        unwritten, in_streams = ((balance.idle.at(codes, name) > 0) & written for name in ("unwritten", "streams"))
        open_s = np.where(unwritten | in_streams, balance.idle.at(codes, "ns") / 1e9, open_s)
    # How far a file grew decides where it is known.
    silent, past_end = (np.where(grown >= 0, (grown > 0) & others, by_calls) for by_calls in (silent, past_end))
    on_streams = (writable & streams & silent & ~writes) | in_streams
    to_write = ((writable & silent & ~writes) | unwritten) & ~on_streams
    mapped = to_write & resizes
    may_be_mapped = ~makes & ~streams & (not _records_mappings(view))
    # Folders are opened to flush them (by SQLite, for one).
    to_read = (opens & ~writable & silent & ~reads & ~syncs) | unread
    to_read &= ~on_streams & ~to_write & ~np.isin(codes, [file for file, kind in below if kind == Kind.READ])
    beyond = survey.at(codes, "furthest_seek", -1) - _lengths(view, codes)
    missing = np.where(grown >= 0, grown, np.where(sought, beyond, 0))
    recorded = view.workload_stats.bytes.total or 0

    def entry(
        kind: UnseenKind, chosen: Bools, cause: str, see_with: str, unbounded: Bools | None = None
    ) -> Unseen | None:
        files = codes[chosen]
        if not len(files):
            return None
        amount = int(missing[chosen].sum()) if (missing[chosen] > 0).all() else None
        most_s = None
        if unbounded is None or not (chosen & unbounded).any():
            most_s = _at_once(view, survey, files, open_s[chosen])
            if most_s < _WORTH_A_LINE * view.workload.span_ns / 1e9 and 100 * (amount or 0) <= recorded:
                return None
        order = files[np.argsort(-open_s[chosen], kind="stable")][:_LISTED]
        paths = [view.workload.paths[code] for code in order.tolist()]
        return Unseen(
            kind=kind, files=paths, count=len(files), bytes=amount, cause=cause, see_with=see_with, most_s=most_s
        )

    untraced = "io_uring, libaio, memory maps, copies inside the kernel and forked workers leave no record"
    if _names_processes(view):
        untraced = "io_uring, libaio, formatted output and calls through duplicated descriptors (dup) leave no record"
    if mapped.any():
        untraced += "; a file with only its length set was probably mapped into memory"
    past = "a seek past all writes to a new file, or its size on disk, shows that more was written: fwrite on "
    unread_by = "memory maps, asynchronous reads, C++ streams and formatted input leave no record"
    if _names_processes(view):
        past = past.replace("a seek past", "a seek, or a read, past")
        unread_by = "asynchronous reads, formatted input and calls through duplicated descriptors (dup) leave no record"
    past += "a duplicated descriptor (numpy's tofile) leaves no record"
    streams_ = (
        "streams of C++, Fortran or formatted output (fprintf, fputs) move data in calls that no tracer of library "
        "functions records: only fopen, fileno and fclose are there"
    )
    entries = (
        entry(
            *("written_without_writes", to_write, f"closed without a recorded write: {untraced}", _STRACE),
            (mapped | may_be_mapped) & ~writes,
        ),
        entry("written_without_writes", past_end & writes, past, _STRACE),
        entry("stream_buffered", on_streams, streams_, _DARSHAN_OR_STRACE),
        entry(
            *("read_without_reads", to_read, f"closed without a recorded read: {unread_by}", _STRACE),
            may_be_mapped | (unread & ~streams & (not _records_mappings(view))),
        ),
    )
    yield from (each for each in entries if each is not None)


def _records_mappings(view: View) -> bool:
    """Whether the tracer records which files are mapped into memory."""
    return all(
        trace.tool == _DFTRACER or not {"mmap", "mmap64"}.isdisjoint(trace.functions)
        for trace in view.measured.traces
    )


def _names_processes(view: View) -> bool:
    """Whether the tracer follows child processes and shows which of them left no records."""
    return all(trace.tool == _DFTRACER for trace in view.measured.traces)


def _has_system_calls(view: View) -> bool:
    """Whether the tracer shows all system calls of the processes."""
    return all(trace.tool == "strace" for trace in view.measured.traces)


def _lengths(view: View, codes: Ints) -> Ints:
    """Final length of each file, `NO_VALUE` if unknown; same shape as `codes`."""
    lengths = view.measured.of(FileLengths)
    return np.full(len(codes), NO_VALUE) if lengths is None else lengths.length[codes]


def _sought_past_end(view: View, survey: IntTable, codes: Ints) -> Bools:
    """Files that the run created, and in which a seek goes past all known writes."""
    lengths = view.measured.of(FileLengths)
    if lengths is None:
        return np.zeros(len(codes), np.bool_)
    length, created = _lengths(view, codes), (survey.at(codes, "makes") > 0) | (survey.at(codes, "empties") > 0)
    # A truncated file reached further before.
    is_known = created & (length != NO_VALUE) & ~lengths.uncertain[codes] & (survey.at(codes, "resizes") == 0)
    past: Bools = is_known & (survey.at(codes, "furthest_seek", -1) > length)
    return past


def _read_past_end(view: View, codes: Ints) -> Bools:
    """Files with more bytes read than written, according to calls with recorded bytes."""
    past = view.measured.of(BeyondEnds)
    if past is None or not all(trace.has_results for trace in view.measured.traces):
        return np.zeros(len(codes), np.bool_)
    return np.isin(codes, past.file[past.beyond > 0])


def _open_s(view: View, survey: IntTable, codes: Ints) -> Floats:
    """Maximum time in seconds that each file was open in some process; same shape as `codes`.

    At most the time from its first open to its last close, and the total open time of all processes.
    """
    end = view.workload.span_ns
    opens, closes = survey.at(codes, "opens"), survey.at(codes, "closes")
    first, last = survey.at(codes, "first_open", _NEVER), survey.at(codes, "last_close", -1)
    # A file that was never closed was open until the end.
    last = np.where(closes < opens, end, last)
    longest = np.maximum(0, last - np.minimum(first, last)) / 1e9
    added = survey.at(codes, "open_us") / 1e6 + np.maximum(0, opens - closes) * (end / 1e9)
    # A duplicated descriptor is closed twice, so the sum does not consist of pairs.
    return np.where(closes > opens, longest, np.clip(added, 0.0, longest))


def _at_once(view: View, survey: IntTable, files: Ints, open_s: Floats) -> float:
    """Maximum time in seconds that a process had some of these files open.

    Files of one process add up within it; a shared file may have been open in each process all the time.
    """
    first, last = survey.at(files, "first_process"), survey.at(files, "last_process")
    alone = first == last
    own = np.bincount(first[alone], open_s[alone], view.workload.processes)
    at_most: float = min(float(own.max(initial=0.0) + open_s[~alone].sum()), view.workload.span_ns / 1e9)
    return at_most


def _by_functions(view: View) -> Iterator[Unseen]:
    undecoded = {name for name, args, _ in _facts(view) if args[:1] == ["undecoded"]}
    follows_children = _has_system_calls(view)
    for kind, names, what, see_with in _FUNCTIONS:
        chosen = _calls_of(view, names)
        if follows_children and kind in ("forked_processes", "copied_in_kernel"):
            continue
        if kind == "asynchronous":
            # Score-P records the bytes of POSIX aio when the operation completes.
            chosen -= _calls_of(view, re.compile(r"(?:lio|aio)_\w+"), tool="otf2")
        if follows_children and kind == "asynchronous":
            chosen = Counter({n: c for n, c in chosen.items() if not n.startswith("io_submit") or n in undecoded})
        if not chosen:
            continue
        listed = ", ".join(f"{name} ({count:,})" for name, count in chosen.most_common(4))
        yield Unseen(kind=kind, files=[], count=chosen.total(), cause=f"{what}: {listed}", see_with=see_with)


def _calls_of(view: View, names: re.Pattern[str], tool: str = "") -> Counter[str]:
    """Number of calls of each function with such a name, in all traces, or in those of one tool."""
    calls: Counter[str] = Counter()
    for trace in view.measured.traces:
        if tool in ("", trace.tool):
            calls.update({name: count for name, count in trace.functions.items() if names.fullmatch(name)})
    return calls


def _facts(view: View) -> Iterator[tuple[str, list[str], int]]:
    for trace in view.measured.traces:
        for name, args, count in trace.facts:
            yield name, list(args), count


def _mapped(view: View) -> dict[int, tuple[int, int]]:
    """Mappings of each data set file into memory, and their lengths together (-1 if unknown), by file."""
    maps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, args, count in _facts(view):
        if name.removesuffix("64") == "mmap":
            length = int(args[1]) if args[1].isdigit() else -1
            for text in args[2:]:
                maps[text].append((count, length))
    if not maps:
        return {}
    codes = view.files[np.isin(np.array(view.workload.paths[:], object)[view.files], list(maps))]
    of_files = {code: maps[view.workload.paths[code]] for code in codes.tolist()}
    return {
        code: (sum(n for n, _ in some), -1 if any(size < 0 for _, size in some) else sum(n * size for n, size in some))
        for code, some in of_files.items()
    }


def _mappings(view: View, mapped: Mapping[int, tuple[int, int]], growth: Mapping[int, int]) -> Iterator[Unseen]:
    """Data set files that were mapped into memory for writing or reading."""
    if mapped:
        grown = sum(growth.get(code, 0) for code in mapped)
        order = sorted(mapped, key=lambda code: -mapped[code][0])[:_LISTED]
        lengths = [length for _, length in mapped.values()]
        most = None if -1 in lengths else sum(lengths)
        of = "" if most is None else f" of at most {format_bytes(most)}"
        yield Unseen(
            kind="memory_mapped",
            files=[view.workload.paths[code] for code in order],
            count=len(mapped),
            bytes=grown or most,
            # Loads and stores in a few pages, which stay in memory, wait for each page once or twice.
            most_s=None if most is None or most > _FEW_PAGES else -(-most // 4096) * _PAGE_S,
            cause=f"mmap ({sum(n for n, _ in mapped.values()):,}){of}: loads and stores in mapped memory are no calls",
            see_with="a trace of page faults (perf trace -F all), or the file without mmap",
        )


def _workers(view: View) -> Iterator[Unseen]:
    """Python programs that started worker processes: library tracers lose processes that exit at once."""
    modules = [path for path in view.workload.paths if "/multiprocessing/" in path and _WORKERS.search(path)]
    if modules and not _names_processes(view):
        yield Unseen(
            kind="forked_processes",
            files=modules[:_LISTED],
            count=len(modules),
            cause="the program loaded the part of Python's multiprocessing that starts processes: calls of forked "
            "workers are not recorded",
            see_with=_STRACE,
        )


def _outside_mpiio(view: View) -> Iterator[Unseen]:
    """Data calls on files opened through MPI-IO, but outside any recorded MPI-IO data call."""
    use, survey = view.measured.of(LibraryUse), view.measured.survey.files
    if use is None or use.caller_unknown.any() or not len(survey):
        return
    outer, files = use.outermost_files, view.files
    of_mpiio = _counts(outer.file[outer.layer == Layer.MPIIO], outer.count[outer.layer == Layer.MPIIO], files)
    is_plain = (outer.layer == Layer.POSIX) | (outer.layer == Layer.STDIO)
    plain = _counts(outer.file[is_plain], outer.count[is_plain], files)
    opens = survey.at(files, "opens")
    moved = survey.at(files, "reads") + survey.at(files, "writes")
    # MPI-IO made all opens, but not most data calls. A non-blocking call moves its data later.
    chosen = (of_mpiio >= opens) & (of_mpiio > 0) & (2 * plain >= moved) & (moved > 0)
    chosen &= survey.at(files, "stream_opens") == 0
    requests = (view.requests(app, Layer.MPIIO) for app in range(len(view.workload.apps)))
    if _calls_of(view, _LATER) and any(of.both("calls") for of in requests):
        return
    if chosen.any():
        codes = files[chosen][np.argsort(-plain[chosen], kind="stable")]
        yield Unseen(
            kind="mpiio_calls_missing",
            files=[view.workload.paths[code] for code in codes[:_LISTED].tolist()],
            count=int(plain[chosen].sum()),
            cause="MPI-IO opened these files, but no MPI-IO data call was recorded around their reads and writes: "
            "Recorder does not wrap MPI-4's MPI_File_*_c. Time inside MPI-IO is a lower bound",
            see_with="Darshan, or the program built without MPI-4's large-count calls",
        )


def _asked_alone(view: View) -> Iterator[tuple[int, Kind, int, int | None]]:
    """File, direction, number and bytes of the calls of libraries for data that no call below them moved.

    Libraries above MPI-IO keep data in their own caches, so their calls count only where nothing below is recorded.
    """
    balance, survey = view.measured.of(FileBalance), view.measured.survey.files
    if balance is None or not len(balance.requested):
        return
    file, kind, layer = unpack(balance.requested.keys, ASKED)
    moved = np.where(kind == Kind.READ, survey.at(file, "reads"), survey.at(file, "writes"))
    alone = (moved == 0) & np.isin(file, view.files)
    alone &= (layer == Layer.MPIIO) | np.isin(file, view.files_of_libraries(None)[0])
    alone &= (balance.requested["bytes"] > 0) | (balance.requested["unsized"] > 0)
    # The calls of MPI-IO that a library makes request the same bytes as its own.
    highest = {(int(file[at]), int(kind[at])): at for at in np.flatnonzero(alone)[np.argsort(-layer[alone])].tolist()}
    for at in highest.values():
        size = None if balance.requested["unsized"][at] else int(balance.requested["bytes"][at])
        yield int(file[at]), Kind(kind[at]), int(balance.requested["calls"][at]), size


def _below_libraries(view: View) -> Iterator[Unseen]:
    """Data that MPI-IO or a library was asked to move, in files without a recorded call that moved it."""
    rows, survey, see_with = list(_asked_alone(view)), view.measured.survey.files, _STRACE
    because = " (pwritev and preadv of Open MPI, POSIX aio of MPICH, or calls that the tracer was set to leave out)"
    if any(trace.tool == "otf2" for trace in view.measured.traces):
        see_with, because = "Score-P with `--io=runtime:posix` at linking, or vani trace -- PROGRAM", ""
    for direction, verb in ((Kind.READ, "read"), (Kind.WRITE, "write")):
        of = [row for row in rows if row[1] == direction]
        if not of:
            continue
        amount = None if any(size is None for *_, size in of) else sum(size or 0 for *_, size in of)
        codes = np.array([file for file, *_ in of], np.int64)
        # No call of the file system opens a file that only libraries use.
        is_bounded = bool((survey.at(codes, "opens") > 0).all())
        yield Unseen(
            kind="calls_below_missing",
            files=[view.workload.paths[code] for code in codes[:_LISTED].tolist()],
            count=sum(calls for _, _, calls, _ in of),
            bytes=amount,
            cause=f"MPI-IO or a library was asked to {verb} {format_bytes(amount)}, and no file-system call that moved "
            f"it was recorded{because}",
            see_with=see_with,
            most_s=_at_once(view, survey, codes, _open_s(view, survey, codes)) if is_bounded else None,
        )
    for name, _, count in _facts(view):
        if name == "file_system_calls_missing" and not rows:
            cause = "calls of libraries (MPI-IO, HDF5) are recorded, and none of the file system, which they make"
            yield Unseen(kind="module_off", files=[], count=count, cause=cause, see_with=see_with)


def _counts(file: Ints, count: Ints, codes: Ints) -> Ints:
    """Counts of the files in `codes`, 0 if missing; same shape as `codes`."""
    return group(file, {"count": count}).at(codes, "count")


def _without_events(view: View) -> Iterator[Unseen]:
    """Processes that others started or waited for, but that left no events."""
    run_s = view.workload.span_ns / 1e9
    for name, bound, count in _facts(view):
        most_s = min(int(bound[0]) / 1e9, run_s) if bound and name == "processes_missing" else None
        if name != "processes_missing" or (most_s is not None and most_s < _WORTH_A_LINE * run_s):
            continue
        yield Unseen(
            kind="forked_processes",
            files=[],
            count=count,
            most_s=most_s,
            cause="processes that the program began, or waited for, left no event: they made no call on files, "
            "DFTracer was not loaded in them, or they were ended before it wrote",
            see_with="DFTracer preloaded (DFTRACER_INIT=PRELOAD, as vani trace --tracer dftracer does), or "
            "vani trace --tracer strace -- PROGRAM",
        )


def _launches(view: View) -> Sequence[Unseen]:
    surplus = sum(count for name, _, count in _facts(view) if name == "several_launches")
    if not surplus:
        return []
    cause = "files of several programs are in one folder: each launch overwrote the trace of the one before"
    see_with = "one folder per launch, or vani trace --tracer strace -- SCRIPT"
    return [Unseen(kind="several_launches", files=[], count=surplus, cause=cause, see_with=see_with)]
