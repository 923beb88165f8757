"""All log records that a profile uses, in the form of each newest module version."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from vani.columns import Bools, Columns, Floats, Ints, Numbers, UInt64s
from vani.readers.darshan.log import MAX_SECONDS, Log
from vani.readers.darshan.record_layouts import LAYOUTS, MISSING, damaged_log
from vani.readers.signatures import MAX_OFFSET, bounded

_STRETCHES: Final = 200
_SHORTEST_S: Final = 0.1
_MAX_PROCESSES: Final = 1 << 17
"""Maximum number of rows in the table: 400 MiB."""


class HeatOfCalls:
    """A heat map like Darshan's own: bins of 0.1 s, doubled until at most 200 cover the run.

    The bytes of a call that spans several bins are spread evenly over its time.
    """

    def __init__(self, runtime_s: float) -> None:
        self.width_s = _SHORTEST_S
        while self.width_s * _STRETCHES < runtime_s:
            self.width_s *= 2
        self._row_of: dict[int, int] = {}
        self._moved = np.zeros((64, 2, _STRETCHES), np.int64)

    def add(self, ranks: list[int], counts: list[tuple[int, int]], calls: Numbers) -> None:
        """Add calls, one record after the other.

        Parameters
        ----------
        ranks, counts
            Rank of each record; numbers of its writing and reading calls here.
        calls
            Shape (calls, words): offset, length, and then start and end, whose words are the bits of floats.
        """
        for rank in ranks:
            if rank not in self._row_of and len(self._row_of) < _MAX_PROCESSES:
                self._row_of[rank] = len(self._row_of)
        if len(self._row_of) > len(self._moved):
            more = np.zeros((2 * len(self._row_of), *self._moved.shape[1:]), np.int64)
            more[: len(self._moved)] = self._moved
            self._moved = more
        each = np.array(counts, np.int64)
        row = np.repeat([self._row_of.get(rank, -1) for rank in ranks], each.sum(axis=1))
        side = np.repeat(np.tile([1, 0], len(counts)), each.ravel())
        size = bounded(calls[:, 1], MAX_OFFSET)
        start, end = (np.ascontiguousarray(calls[:, at]).view(np.float64) for at in (2, 3))
        with np.errstate(invalid="ignore"):
            sound = (row >= 0) & (size >= 0) & (start >= 0) & (start <= end) & (end < self.width_s * _STRETCHES)
        row, side, size = (column[sound].astype(np.int64) for column in (row, side, size))
        start, end = start[sound], end[sound]
        first, last = ((moment / self.width_s).astype(np.int64) for moment in (start, end))
        done = np.zeros(len(size), np.int64)
        for step in range(int((last - first).max(initial=-1)) + 1):
            now = np.flatnonzero(first + step <= last)
            ends_here = first[now] + step == last[now]
            share = ((first[now] + step + 1) * self.width_s - start[now]) / np.maximum(end[now] - start[now], 1e-12)
            until = np.where(ends_here, size[now], np.minimum((size[now] * share).astype(np.int64), size[now]))
            np.add.at(self._moved, (row[now], side[now], first[now] + step), until - done[now])
            done[now] = until

    def table(self, heat_id: int) -> dict[str, Numbers] | None:
        """The table in the form of `Records.heat`; None if there were too many processes for it."""
        if len(self._row_of) >= _MAX_PROCESSES:
            return None
        rows = len(self._row_of)
        return {
            "id": np.full(rows, heat_id, np.uint64),
            "rank": np.array(list(self._row_of), np.int64),
            "width": np.full(rows, self.width_s),
            "read": self._moved[:rows, 0],
            "write": self._moved[:rows, 1],
        }


_COMPONENT: Final = ("STRIPE_SIZE", "STRIPE_COUNT", "STRIPE_PATTERN", "FLAGS", "EXT_START", "EXT_END", "MIRROR_ID")
_WORDS: Final = 9
"""Words of a component: its numbers, and a pool name of 16 bytes."""
_HOST: Final = slice(24, 88)
MAX_CALLS: Final = 1 << 22
"""Maximum number of DXT calls that are read individually: a profile of this many takes about 1.5 GB."""
_AT_ONCE: Final = 1 << 17
_MAX_CELLS: Final = 1 << 26
"""Maximum number of cells of a heat map in each direction: 512 MiB."""


def _whole(log: Log, module: str) -> Iterator[tuple[bytes, bytes]]:
    """Head and arrays of each record, each as one piece."""
    head: bytes | None = None
    arrays: list[bytes] = []
    for is_head, part in log.parts(module):
        if not is_head:
            arrays.append(part)
            continue
        if head is not None:
            yield head, b"".join(arrays)
        head, arrays = part, []
    if head is not None:
        yield head, b"".join(arrays)


def layouts_of(log: Log) -> tuple[Columns, Columns]:
    """Layouts and targets of files on Lustre, in the form of `Records.layouts` and `Records.targets`."""
    oldest = log.version_of("LUSTRE") == 1
    rows: list[list[int]] = []
    files: list[int] = []
    of_system: list[int] = []
    on_targets: list[tuple[int, Ints]] = []
    for head, arrays in _whole(log, "LUSTRE"):
        file, _, *numbers = log.numbers(head).tolist()
        words = log.numbers(arrays)
        if oldest:
            osts, _, _, size, count = numbers
            parts, targets = [[size, count, -1, -1, 0, -1, -1]], words
        else:
            behind, osts = _WORDS * numbers[0], -1
            parts = words[:behind].reshape(-1, _WORDS)[:, : len(_COMPONENT)].tolist()
            targets = words[behind:]
            # While a program runs, unused components have a size of -1.
            parts = parts[: next((at for at, part in enumerate(parts) if part[0] == -1), len(parts))]
            count = sum(part[1] for part in parts)
        if count > 0:
            on_targets.append((file % (1 << 64), np.unique(targets[:count])))
        rows += parts
        files += [file % (1 << 64)] * len(parts)
        of_system += [osts] * len(parts)
    table = bounded(np.array(rows, np.int64).reshape(-1, len(_COMPONENT)), MAX_OFFSET)
    layouts: Columns = {f"LUSTRE_COMP_{name}": table[:, at] for at, name in enumerate(_COMPONENT)}
    layouts |= {"id": np.array(files, np.uint64), "OSTS": np.array(of_system, np.int64)}
    ids = np.array([file for file, _ in on_targets], np.uint64)
    return layouts, {
        "id": np.repeat(ids, [len(some) for _, some in on_targets]),
        "target": np.concatenate([np.empty(0, np.int64), *(some for _, some in on_targets)]),
    }


def calls_of(log: Log, module: str) -> tuple[Columns | HeatOfCalls, list[str]]:
    """Calls and hosts of a DXT module, in the form of `Records.calls` and `Records.hosts`.

    If there are more than `MAX_CALLS` calls, returns only the bytes that each process moved over time, and no hosts.
    """
    version = log.version_of(module)
    # Later versions append the thread number.
    words = 5 if version > (1 if module == "DXT_POSIX" else 2) else 4
    heads: list[bytes] = []
    batch = _Batch(words)
    heat: HeatOfCalls | None = None
    for is_head, part in log.parts(module):
        if is_head:
            # The numbers in the host name's bytes have no meaning.
            _, rank, *_, writes, _ = log.numbers(part).tolist()
            batch.begin(rank, writes)
            if heat is None:
                heads.append(part)
        else:
            batch.append(part)
        if heat is None and batch.calls + len(heads) > MAX_CALLS:
            heat, heads = HeatOfCalls(log.job.runtime_s), []
        if heat is not None and batch.calls + len(batch.ranks) >= _AT_ONCE:
            heat.add(batch.ranks, batch.counts, batch.table(log))
            batch.forget()
    if heat is not None:
        heat.add(batch.ranks, batch.counts, batch.table(log))
        return heat, []
    facts = [log.numbers(head) for head in heads]
    table = np.stack(facts) if facts else np.empty((0, 13), np.int64)
    offset, length, start, end = (np.ascontiguousarray(batch.table(log)[:, at]) for at in range(4))
    if (module, version) == ("DXT_MPIIO", 1):
        offset = np.full(len(offset), -1)
    return {
        "id": table[:, 0].astype(np.int64).view(np.uint64),
        "rank": table[:, 1],
        "writes": table[:, 11],
        "reads": table[:, 12],
        "offset": bounded(offset, MAX_OFFSET),
        "length": bounded(length, MAX_OFFSET),
        "start": start.view(np.float64),
        "end": end.view(np.float64),
    }, [head[_HOST].split(b"\0", 1)[0].decode(errors="replace") for head in heads]


class _Batch:
    """Calls of some records; the last record may continue."""

    def __init__(self, words: int) -> None:
        self._size, self._words = 8 * words, words
        self.ranks: list[int] = []
        self.counts: list[tuple[int, int]] = []
        """Per record: number of writing calls, and of reading calls."""
        self.calls = 0
        self._parts: list[bytes] = []
        self._writes = 0
        self._cut = b""

    def begin(self, rank: int, writes: int) -> None:
        """Begin a record with `writes` writing calls; its other calls read."""
        self.ranks.append(rank)
        self.counts.append((0, 0))
        self._writes = writes

    def append(self, part: bytes) -> None:
        """Add more of the record's bytes; the last call may be incomplete."""
        part = self._cut + part
        count = len(part) // self._size
        self._cut = part[count * self._size :]
        self._parts.append(part[: count * self._size])
        writes = min(count, self._writes)
        self._writes -= writes
        wrote, read = self.counts[-1]
        self.counts[-1] = (wrote + writes, read + count - writes)
        self.calls += count

    def table(self, log: Log) -> Numbers:
        """The complete calls, shape (calls, words)."""
        return log.numbers(b"".join(self._parts)).reshape(-1, self._words)

    def forget(self) -> None:
        """Drop the calls so far, and continue with the last record."""
        self.ranks, self.counts, self.calls, self._parts = self.ranks[-1:], [(0, 0)], 0, []


def check_cells(path: Path, records: int, bins: int) -> None:
    """Raise TraceError if heat maps are larger than those of any run."""
    if records * bins > _MAX_CELLS:
        raise damaged_log(path, f"HEATMAP has {records:,} records, and one of them has {bins:,} bins: more than can be")


def heat_of(log: Log) -> Columns:
    """Bytes in each bin, in the form of `Records.heat`: one row per record, padded with 0."""
    ids, ranks, widths = [], [], []
    read: list[Ints] = []
    written: list[Ints] = []
    first_bins, first_width = 0, 0.0
    for head, arrays in _whole(log, "HEATMAP"):
        file, rank, _, bins, *_ = log.numbers(head).tolist()
        width = float(log.numbers(head, "f8")[2])
        first_bins, first_width = first_bins or bins, first_width or width
        words = bounded(log.numbers(arrays), MAX_OFFSET)
        # Processes of Darshan 3.4.0 to 3.4.3 may have one bin more than the others, which `darshan-util` drops.
        shown = bins - 1 if width == first_width and bins == first_bins + 1 else bins
        ids.append(file % (1 << 64))
        ranks.append(rank)
        widths.append(width)
        written.append(words[:shown])
        read.append(words[bins : bins + shown])
    longest = max((len(some) for some in read), default=0)
    check_cells(log.path, len(ids), longest)
    heat: Columns = {
        "id": np.array(ids, np.uint64),
        "rank": np.array(ranks, np.int64),
        "width": np.array(widths, np.float64),
    }
    for name, side in (("read", read), ("write", written)):
        heat[name] = np.zeros((len(side), longest), np.int64)
        for row, some in zip(heat[name], side, strict=True):
            row[: len(some)] = some
    return heat


MODULES: Final = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
"""Modules with records of counters."""
_HEAT: Final = "heatmap:POSIX"


@dataclass(frozen=True)
class Module:
    """A module's records, one per row."""

    id: UInt64s
    """File id of each record."""
    rank: Ints
    counters: Mapping[str, Ints]
    """By Darshan's names, which begin with `prefix`."""
    times: Mapping[str, Floats]
    prefix: str

    def __len__(self) -> int:
        return len(self.id)

    def raw(self, name: str) -> Ints:
        """A counter as stored, by its name without the prefix; 0 if no record has it."""
        return self.counters.get(f"{self.prefix}_{name}", np.zeros(len(self), np.int64))

    def count(self, *names: str) -> Ints:
        """Sum of counters per record; uncounted ones are 0."""
        return sum((np.maximum(self.raw(name), 0) for name in names), np.zeros(len(self), np.int64))

    def seconds(self, name: str) -> Floats:
        """A time in seconds, without `F_`; 0 if it was not measured, or is damaged."""
        stored = self.times.get(f"{self.prefix}_F_{name}")
        if stored is None:
            return np.zeros(len(self))
        with np.errstate(invalid="ignore"):
            sound: Floats = np.where((stored > 0) & (stored < MAX_SECONDS), stored, 0.0)
        return sound

    @property
    def opens(self) -> Ints:
        """Opens, without the calls that Darshan counts as such."""
        twice = self.count("FILENOS", "DUPS") if self.prefix == "POSIX" else self.count("FDOPENS")
        opens: Ints = np.maximum(self.count("OPENS") - twice, 0)
        return opens

    def where(self, chosen: Bools) -> "Module":
        """Some of the records."""
        counters = {name: column[chosen] for name, column in self.counters.items()}
        times = {name: column[chosen] for name, column in self.times.items()}
        return Module(self.id[chosen], self.rank[chosen], counters, times, self.prefix)


@dataclass(frozen=True)
class Records:
    """Contents of a log."""

    version: str
    exe: str
    ranks: int
    start_s: float
    end_s: float
    mounts: Sequence[tuple[str, str]]
    partial: Sequence[str]
    """Modules that dropped some records while the program ran."""
    ids: UInt64s
    names: Sequence[str]
    modules: Mapping[str, Module]
    layouts: Mapping[str, Numbers] | None = None
    """Components, one per row, by `LUSTRE_COMP_*` name and `id` of the file; `OSTS` is the number of the file
    system's targets, -1 if the log does not record it. None without that module."""
    calls: Mapping[str, Numbers] | None = None
    """DXT calls: `id`, `rank`, `writes` and `reads` (counts) of each record; `offset`, `length`, `start`, `end`
    (seconds) of its writes and then its reads, in record order."""
    hosts: Sequence[str] = ()
    """Host of each DXT record."""
    heat: Mapping[str, Numbers] | None = None
    """`id`, `rank` and `width` (seconds) of each record; `read` and `write`, shape (records, bins)."""
    user: int | None = None
    unread: Sequence[str] = ()
    """Modules with records of I/O that Vani does not read."""
    job_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Notes in the log's header: `lib_ver`, `h` (hints for writing the log), and anything a site adds."""
    targets: Mapping[str, Numbers] | None = None
    """Lustre targets: `id` of a file and `target`, an OST number of the file; one row per pair."""
    many_calls: bool = False
    """DXT has too many calls to read individually; `heat` summarises them if Darshan wrote no heat map."""
    mixed: int = 0
    """POSIX records that were dropped because stream calls were added to them (Darshan 3.0)."""

    def own_ranks(self, ranks: Ints) -> Ints:
        """Ranks of some records; in a run of one process, all records are of "all" ranks."""
        return ranks if self.ranks > 1 else np.zeros(len(ranks), np.int64)


def read_records(log: Log, *, for_sums: bool = False) -> Records:
    """Read the records of a log.

    Parameters
    ----------
    for_sums
        Only POSIX, STDIO, MPI-IO and Lustre.

    Raises
    ------
    TraceError
        The log has unknown records, or claims something impossible.
    """
    if not for_sums:
        log.refuse_moments()
    job, names = log.job, log.names()
    calls, hosts = calls_of(log, "DXT_POSIX") if log.has("DXT_POSIX") and not for_sums else (None, [])
    heat: Mapping[str, Numbers] | None = heat_of(log) if log.has("HEATMAP") and not for_sums else None
    many = isinstance(calls, HeatOfCalls)
    if isinstance(calls, HeatOfCalls):
        if heat is None:
            heat_id = next((file for file, name in names.items() if name == _HEAT), 0)
            names[heat_id] = _HEAT
            heat = calls.table(heat_id)
        calls = None
    layouts, targets = layouts_of(log) if log.has("LUSTRE") else (None, None)
    return Records(
        version=log.version,
        exe=job.exe,
        ranks=job.processes,
        start_s=job.start_s,
        end_s=job.start_s + job.runtime_s,
        mounts=job.mounts,
        partial=log.partial,
        unread=[name for name in ("DFS", "DAOS") if log.has(name)],
        ids=np.array(list(names), np.uint64),
        names=list(names.values()),
        modules={name: _module(log, name) for name in MODULES[: 3 if for_sums else None] if log.has(name) or for_sums},
        layouts=layouts,
        calls=calls,
        hosts=hosts,
        heat=heat,
        many_calls=many,
        user=job.uid,
        job_id=job.job_id,
        metadata=job.metadata,
        targets=targets,
        mixed=log.mixed,
    )


def _module(log: Log, name: str) -> Module:
    words, layout = log.rows(name)
    newest = LAYOUTS[name][max(LAYOUTS[name])]
    prefix = "MPIIO" if name == "MPI-IO" else name
    behind = layout.first + len(layout.counters)
    seconds = np.ascontiguousarray(words[:, behind:]).view(np.float64)
    counters = {name: words[:, layout.first + at] for at, name in enumerate(layout.counters)}
    if "INDEP_OPENS" in counters and "OPENS" in newest.at:
        alone, together = counters["INDEP_OPENS"], counters["COLL_OPENS"]
        least = np.minimum(alone, together)
        counters["OPENS"] = np.where(least < 0, least, alone + together)
    ids = words[:, 2] if layout.names_file else words[:, 0]
    if newest.names_file and not layout.names_file:
        # The oldest records of file parts name their file in their own name only, before the part's.
        names = log.names()
        files = {path: file for file, path in names.items()}
        parts = [names.get(record, "").partition(":/") for record in words[:, 0].copy().view(np.uint64).tolist()]
        ids = np.array([files.get(path, 0) if part else 0 for path, part, _ in parts], np.uint64).view(np.int64)

    return Module(
        ids.copy().view(np.uint64),
        words[:, 1],
        {
            f"{prefix}_{name}": counters.get(name, np.full(len(words), MISSING.get(name, -1)))
            for name in newest.counters
        },
        {
            f"{prefix}_{name}": seconds[:, layout.at[name]] if name in layout.at else np.full(len(words), -1.0)
            for name in newest.times
        },
        prefix,
    )
