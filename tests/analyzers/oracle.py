"""IOSTATS of a small workload, computed call by call in plain Python from the contract and the measures' docstrings.

It uses neither numpy nor `vani.analyzers`: intervals are sets of half-open pieces, files are lists of touched
bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from call_tables import FUNCTION_NAMES, InventedTrace

from vani.calls import FileClass, Flag, Kind, Layer

PIECES_OF_THE_RUN = 4096  # docs of past_end: "to a 4,096th of the run"


@dataclass(frozen=True)
class Call:
    """A counted file-system call with global ranks and files."""

    index: int
    app: str
    process: tuple[int, int]
    path: str | None
    included: bool
    kind: int
    stdio: bool
    flags: int
    offset: int | None
    size: int | None
    start: int
    end: int
    function: str
    phase: int = -1
    pattern: str | None = None
    beyond: int | None = None


def length(pieces: Iterable[tuple[int, int]]) -> int:
    """Length of the union of half-open intervals."""
    total, reached = 0, None
    for a, b in sorted(pieces):
        if reached is None or a > reached:
            reached = a
        total += max(0, b - reached)
        reached = max(reached, b)
    return total


def counted_calls(traces: list[InventedTrace]) -> list[Call]:
    """File-system calls outside other file-system calls, in recorded order."""
    origin = min(t.start_unix_s for t in traces)
    found = []
    for number, trace in enumerate(traces):
        shift = round((trace.start_unix_s - origin) * 1e9)
        paths = trace.paths()
        for row in trace.rows:
            if row["layer"] > Layer.STDIO or row["flags"] & Flag.NESTED:
                continue
            file = row["file"]
            start = row["start_ns"] + shift
            found.append(
                Call(
                    len(found),
                    trace.app,
                    (number, row["rank"]),
                    None if file is None else paths[file],
                    file is not None and trace.classes[file] == FileClass.DATASET,
                    row["kind"],
                    row["layer"] == Layer.STDIO,
                    row["flags"],
                    row["offset"],
                    row["bytes"],
                    start,
                    start + row["duration_ns"],
                    FUNCTION_NAMES[row["func"]],
                )
            )
    return found


def phases_of(calls: list[Call], gap_ns: int) -> list[list[Call]]:
    """Calls of one app between pauses longer than the gap."""
    phases: list[list[Call]] = []
    reached = 0
    for one in sorted(calls, key=lambda c: c.start):
        if not phases or one.start - reached > gap_ns:
            phases.append([])
            reached = one.start
        phases[-1].append(one)
        reached = max(reached, one.end, one.start + 1)
    return phases


def rows_of(phases: list[list[Call]]) -> list[list[list[Call]]]:
    """Phases of one app grouped by similarity (docstring of `entities.view`), in order of the first of each row."""

    def numbers(phase: list[Call]) -> tuple[list[int], list[int], int]:
        moved = [sum(c.size or 0 for c in phase if c.kind == side) for side in (Kind.READ, Kind.WRITE)]
        calls = [
            sum(c.kind == kind for c in phase) for kind in (Kind.READ, Kind.WRITE, Kind.METADATA, Kind.SYNC)
        ]
        return moved, calls, len({c.process for c in phase})

    def alike(one: list[Call], other: list[Call]) -> bool:
        (moved, calls, few), (also, beside, many) = numbers(one), numbers(other)
        return (
            all(3 * abs(a - b) <= max(sum(moved), sum(also)) for a, b in zip(moved, also, strict=True))
            and all(3 * abs(a - b) <= max(sum(calls), sum(beside)) for a, b in zip(calls, beside, strict=True))
            and max(few, many) <= 2 * min(few, many)
        )

    rows: list[list[list[Call]]] = []
    for phase in phases:
        row = next((row for row in rows if alike(row[0], phase)), None)
        if row is None:
            rows.append([phase])
        else:
            row.append(phase)
    return rows


def patterns(calls: list[Call], ends: Ends) -> dict[int, str]:
    """Class of every data operation, by its index (docstring of `access_pattern`)."""
    found: dict[int, str] = {}
    streams: dict[tuple[Any, ...], list[Call]] = defaultdict(list)
    fresh: dict[int, bool] = {}
    jumped: dict[int, bool] = {}
    opened: dict[tuple[Any, ...], bool] = defaultdict(lambda: True)
    moved: dict[tuple[Any, ...], bool] = defaultdict(bool)
    sought: dict[tuple[Any, ...], bool] = defaultdict(bool)
    cut: set[int] = set()
    for one in calls:
        if one.path is None:
            if one.kind <= Kind.WRITE:
                found[one.index] = "consecutive"
            continue
        keys = [(one.process, one.path, side) for side in (Kind.READ, Kind.WRITE)]
        if one.kind <= Kind.WRITE:
            key = (one.process, one.path, one.kind)
            if streams[key] and _behind_cut(streams[key][-1], one, ends, sought=sought[key]):
                cut.add(one.index)
            sought[key] = False
            streams[key].append(one)
            fresh[one.index], jumped[one.index] = opened[key], moved[key]
            opened[key] = moved[key] = False
        else:
            for key in keys:
                opened[key] |= bool(one.flags & Flag.OPEN)
                moved[key] |= bool(one.flags & Flag.SEEK) and one.offset is None
                sought[key] |= bool(one.flags & Flag.SEEK)
    for stream in streams.values():
        run: list[Call] = []
        for one in stream:
            if fresh[one.index] and run:
                found |= _patterns_of_run(run, jumped, cut)
                run = []
            run.append(one)
        found |= _patterns_of_run(run, jumped, cut)
    return found


def _behind_cut(before: Call, one: Call, ends: Ends, *, sought: bool) -> bool:
    """Whether an operation starts where the end of the file cut the previous one short."""
    if None in (before.offset, one.offset):
        return False
    if not before.offset <= one.offset < before.offset + (before.size or 0):
        return False
    if before.function in ("read", "write") and one.function in ("read", "write") and not sought:
        return True
    known = one.path in ends.since and one.start >= ends.since[one.path]
    return one.kind == Kind.READ and known and one.offset == ends.at(one.path, one.start)


def _patterns_of_run(run: list[Call], jumped: dict[int, bool], cut: set[int]) -> dict[int, str]:
    """Class of the operations of one stream between two opens."""
    n = len(run)
    known = [i > 0 and run[i].offset is not None and run[i - 1].offset is not None for i in range(n)]
    step = [run[i].offset - run[i - 1].offset if known[i] else None for i in range(n)]
    on = [run[i].offset - run[i - 1].offset - (run[i - 1].size or 0) if known[i] else None for i in range(n)]
    on = [0 if run[i].index in cut else d for i, d in enumerate(on)]
    strided = set()
    for i in range(2, n):
        alike = step[i] is not None and step[i] == step[i - 1] and step[i] != 0
        if alike and on[i] != 0 and not run[i].flags & Flag.APPEND:
            strided |= {i - 2, i - 1, i}
    kinds: list[str] = []
    for i in range(n):
        if on[i] is None:
            kinds.append("sequential" if jumped[run[i].index] else "consecutive")
        elif on[i] == 0:
            kinds.append("consecutive")
        else:
            neighbours = [on[j] for j in (i - 1, i + 1) if 0 <= j < n and on[j] is not None]
            kinds.append("sequential" if on[i] > 0 and not any(d < 0 for d in neighbours) else "random")
        if run[i].flags & Flag.APPEND:
            kinds[i] = "consecutive"
        if i in strided:
            kinds[i] = "strided"
    for i in strided:
        kinds[i] = "strided"
    if n > 1 and 0 not in strided and not run[0].flags & Flag.APPEND:
        kinds[0] = kinds[1]
    return {c.index: k for c, k in zip(run, kinds, strict=True)}


@dataclass
class Ends:
    """The known ends of files (docstrings of `past_end` and `survey`)."""

    since: dict[str, int]
    reach: dict[str, list[tuple[int, int]]]
    first_read: dict[str, int]
    bucket_ns: int

    def at(self, path: str, moment: int) -> int:
        bucket = min(moment // self.bucket_ns, PIECES_OF_THE_RUN)
        return max(
            (r for t, r in self.reach[path] if min(t // self.bucket_ns, PIECES_OF_THE_RUN) <= bucket),
            default=0,
        )

    def last(self, path: str) -> int:
        return max((r for _, r in self.reach[path]), default=0)


def ends_of(calls: list[Call], span_ns: int) -> Ends:
    since: dict[str, int] = {}
    first_read: dict[str, int] = {}
    reach: dict[str, list[tuple[int, int]]] = defaultdict(list)
    blind, made, written, sized = set(), set(), set(), set()
    for one in calls:
        if not one.included:
            continue
        if one.flags & (Flag.CREATE | Flag.TRUNCATE):
            since[one.path] = min(since.get(one.path, one.start), one.start)
            made.add(one.path)
        if one.kind == Kind.READ:
            first_read[one.path] = min(first_read.get(one.path, one.start), one.start)
        if one.kind == Kind.WRITE:
            written.add(one.path)
            if one.size is None or (one.offset is None and one.size > 0):
                blind.add(one.path)
            elif one.offset is not None and one.size > 0:
                reach[one.path].append((one.start, one.offset + one.size))
        elif one.flags & Flag.RESIZE:
            sized.add(one.path)
            if one.offset is None:
                blind.add(one.path)
            else:
                reach[one.path].append((one.start, one.offset))
                since[one.path] = min(since.get(one.path, one.start), one.start)
    # A created file without a recorded write or length was filled by calls that leave no record.
    for path in blind | (made - written - sized):
        since.pop(path, None)
    return Ends(since, reach, first_read, max(1, -(-(span_ns + 1) // PIECES_OF_THE_RUN)))


def stats(calls: list[Call], ends: Ends, pattern: dict[int, str]) -> dict[str, Any]:
    """The block IOSTATS of some calls, as a profile's model dumps it except for rounding of floats."""
    reads = [c for c in calls if c.kind == Kind.READ]
    writes = [c for c in calls if c.kind == Kind.WRITE]
    metadata = [c for c in calls if c.kind == Kind.METADATA]
    syncs = [c for c in calls if c.kind == Kind.SYNC]
    kinds = {"read": reads, "write": writes, "metadata": metadata, "sync": syncs, "total": calls}

    def per_process(of: list[Call]) -> int:
        groups: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        for c in of:
            groups[c.process].append((c.start, c.end))
        return sum(length(g) for g in groups.values())

    time = {n: per_process(of) for n, of in kinds.items()}
    busy = {n: length((c.start, c.end) for c in of) for n, of in kinds.items()}
    judged = [
        c
        for c in reads
        if c.path in ends.since and c.end >= ends.since[c.path] and None not in (c.size, c.offset)
    ]
    beyond = sum(
        min(c.size, max(0, c.offset + c.size - max(c.offset, ends.at(c.path, c.end)))) for c in judged
    )
    moved = {"read": _moved(reads), "written": _moved(writes)}
    data = Counter(pattern[c.index] for c in reads + writes)
    operations = len(reads) + len(writes)
    spent = time["read"] + time["write"] + time["metadata"] + time["sync"]
    saving = length((c.start, c.end) for c in writes + syncs)
    return {
        "bytes": {**moved, "total": None if None in moved.values() else sum(moved.values())},
        "footprint": {
            "read": None if moved["read"] is None else footprint(reads, ends, clip=True),
            "written": None if moved["written"] is None else footprint(writes, ends, clip=False),
        },
        "past_end": {"read": beyond if judged or not reads else None},
        "ops": {"read": len(reads), "write": len(writes), "metadata": len(metadata), "sync": len(syncs)},
        "time_s": {n: t / 1e9 for n, t in time.items()},
        "busy_s": {n: t / 1e9 for n, t in busy.items()},
        "ops_share": _share(operations, len(metadata), len(syncs)),
        "time_share": _share(time["read"] + time["write"], time["metadata"], time["sync"]) if spent else None,
        "bandwidth": {
            "read": _rate(None if moved["read"] is None else moved["read"] - beyond, busy["read"], time["read"]),
            "write": _rate(moved["written"], busy["write"], time["write"]),
            "write_synced": _rate(moved["written"], saving, time["write"] + time["sync"])
            if writes and syncs
            else None,
        },
        "transfer_size": {"read": sizes(reads), "write": sizes(writes)},
        "access_pattern": {
            n: data[n] / operations for n in ("consecutive", "sequential", "strided", "random")
        }
        if operations
        else None,
        "calls": costs(calls),
        "metadata_kinds": metadata_kinds(metadata) if metadata else None,
    }


def _moved(calls: list[Call]) -> int | None:
    """Bytes of all calls with known sizes; None if there are calls but no known size."""
    known = [c.size for c in calls if c.size is not None]
    return sum(known) if known or not calls else None


def _rate(moved: int | None, busy: int, spent: int) -> float | None:
    """A rate; None above 25 GB/s per process, which is impossible."""
    return moved / busy * 1e9 if busy and moved is not None and moved / max(1, spent) <= 25 else None


def costs(calls: list[Call]) -> list[dict[str, Any]]:
    """Functions by time, then calls, then name; few enough to be listed individually."""
    found = []
    for name in {c.function for c in calls}:
        mine = [c for c in calls if c.function == name]
        moves = [c for c in mine if c.kind <= Kind.WRITE]
        time = sum(c.end - c.start for c in mine)
        size = _moved(moves) if moves else None
        found.append(
            (-time, -len(mine), {"name": name, "count": len(mine), "time_s": time / 1e9, "bytes": size})
        )
    return [row for _, _, row in sorted(found, key=lambda one: (one[0], one[1], one[2]["name"]))]


def metadata_kinds(calls: list[Call]) -> dict[str, dict[str, Any]]:
    """Invented functions are named after what they do."""
    found = {}
    for kind in ("open", "close", "stat", "seek", "directory", "remove", "other"):
        mine = [
            c
            for c in calls
            if {"mkdir": "directory", "unlink": "remove", "lseek": "seek"}.get(c.function, c.function) == kind
        ]
        found[kind] = {"count": len(mine), "time_s": sum(c.end - c.start for c in mine) / 1e9}
    rest = len(calls) - sum(one["count"] for one in found.values())
    found["other"]["count"] += rest
    named = sum(one["time_s"] for one in found.values())
    found["other"]["time_s"] += sum(c.end - c.start for c in calls) / 1e9 - named
    return found


def _share(data: int, metadata: int, sync: int) -> dict[str, float] | None:
    total = data + metadata + sync
    return {"data": data / total, "metadata": metadata / total, "sync": sync / total} if total else None


def footprint(calls: list[Call], ends: Ends, *, clip: bool) -> int:
    touched: dict[str, list[tuple[int, int]]] = defaultdict(list)
    appended = 0
    for c in calls:
        if c.path is None or c.size is None:
            continue
        if c.offset is None:
            appended += c.size if c.flags & Flag.APPEND else 0
            continue
        end = c.offset + c.size
        if clip and c.path in ends.since and ends.since[c.path] <= ends.first_read[c.path]:
            end = max(c.offset, min(end, ends.last(c.path)))
        touched[c.path].append((c.offset, end))
    return appended + sum(length(t) for t in touched.values())


BINS = [(0, "0-1K"), (1 << 10, "1K-4K"), (4 << 10, "4K-16K")]


def bin_of(size: int) -> str:
    return max((low, name) for low, name in BINS if size >= low)[1]


def accesses(calls: list[Call], pattern: dict[int, str], path: str | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows of the file system's layers by file, direction and layer, without the bytes inside collective calls."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for side, direction in ((Kind.READ, "read"), (Kind.WRITE, "write")):
        for layer in ("posix", "stdio"):
            own = [c for c in calls if c.kind == side and c.stdio == (layer == "stdio")]
            known = [c for c in own if c.size is not None]
            if not own:
                continue
            by_size, times = Counter(), Counter()
            for c in known:
                by_size[bin_of(c.size)] += c.size
                times[bin_of(c.size)] += c.end - c.start
            is_timed = bool(times) and sum(c.end - c.start for c in own) == sum(times.values()) > 0
            rows[path, direction, layer] = {
                "calls": len(own),
                "bytes": sum(c.size for c in known) if known else None,
                "time_s": sum(c.end - c.start for c in own) / 1e9,
                "processes": len({c.process for c in own}),
                "bytes_by_size": dict(by_size) if known else None,
                "time_by_size": {name: time / 1e9 for name, time in times.items()} if is_timed else None,
                "bytes_misaligned": None
                if not known or any(c.offset is None and c.size for c in known)
                else sum(c.size for c in known if c.size and c.offset % 4096),
                "bytes_sequential": sum(c.size for c in known if pattern[c.index] != "random" or c.size >= 1 << 20)
                if known
                else None,
            }
    return rows


def sizes(calls: list[Call]) -> dict[str, Any] | None:
    if not calls:
        return None
    known = sorted(c.size for c in calls if c.size is not None)
    histogram = Counter(map(bin_of, known))
    if len(known) < len(calls):
        histogram["unknown"] = len(calls) - len(known)
    rank = {p: known[-(-len(known) * p // 100) - 1] if known else None for p in (50, 90)}
    common = sorted(Counter(known).items(), key=lambda s: (-s[1], s[0]))[:5]
    return {
        "min": known[0] if known else None,
        "p50": rank[50],
        "p90": rank[90],
        "max": known[-1] if known else None,
        "common": common,
        "histogram": dict(histogram),
    }


Expected = dict[str, Any]


def expected(traces: list[InventedTrace], gap_ns: int) -> dict[str, Expected]:
    """IOSTATS of the workflow, of each app, row of phases (with their number) and file, and of excluded files."""
    calls = counted_calls(traces)
    origin = min(t.start_unix_s for t in traces)
    span = max(
        (
            r["start_ns"] + r["duration_ns"] + round((t.start_unix_s - origin) * 1e9)
            for t in traces
            for r in t.rows
        ),
        default=0,
    )
    span = max(span, *(round((t.start_unix_s - origin) * 1e9) for t in traces))
    ends = ends_of(calls, span)
    pattern = patterns(calls, ends)
    inside = [c for c in calls if c.included]

    def block(of: Callable[[Call], bool]) -> Expected:
        return stats([c for c in inside if of(c)], ends, pattern)

    apps = {t.app for t in traces}
    phases = {}
    for app in apps:
        for index, row in enumerate(rows_of(phases_of([c for c in inside if c.app == app], gap_ns))):
            calls_of_row = sorted((c for phase in row for c in phase), key=lambda c: c.index)
            phases[app, index] = (len(row), stats(calls_of_row, ends, pattern))
    used = {
        c.path
        for c in inside
        if not c.flags & Flag.DIRECTORY and (c.kind <= Kind.WRITE or c.flags & Flag.OPEN)
    }
    return {
        "workflow": block(lambda c: True),
        "apps": {app: block(lambda c, app=app: c.app == app) for app in apps},
        "phases": phases,
        "accesses": {
            key: row
            for path in (None, *used)
            for key, row in accesses([c for c in inside if path in (None, c.path)], pattern, path).items()
        },
        "files": {path: block(lambda c, path=path: c.path == path) for path in used},
        "excluded": stats([c for c in calls if not c.included], ends, pattern),
        "processes_of_file": {
            path: len(
                {
                    c.process
                    for c in inside
                    if c.path == path
                    and not c.flags & Flag.DIRECTORY
                    and (c.kind <= Kind.WRITE or c.flags & Flag.OPEN)
                }
            )
            for path in used
        },
    }
