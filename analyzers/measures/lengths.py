"""Lengths of files, and reads past their ends.

**Final length**: the furthest write since they were last emptied or truncated.

A file is emptied by an open with O_TRUNC (`fopen` w), and by one with O_CREAT after the same process removed its
name. It is truncated or extended by truncate, ftruncate and MPI_File_set_size, even if the ftruncate below
the latter is not recorded. Earlier writes of the same process are lost, later ones count: their order is recorded.
The order of calls of several processes follows their clocks, which are trusted to a second or a tenth of the
run, whichever is larger. Within that, writes of others are assumed to come after an emptying or truncation to zero;
whether they come after another truncation is unknown.

A removed file has the length that it had. Unit: bytes. Writes to each file are kept by 64ths of the run.
More than a million of them exceed the memory reserved for them: then files are as long as the furthest write
reached.

**Bytes past the end**: bytes that reads requested past the end of their file (contract, `past_end`), which cannot
have been moved.

The end of a file is known from when the run created it, or if job.yaml has its size, while the offset and size
of every write to it are known. It is the furthest end that writes and truncations of any process had reached when
the read ended (to a 4,096th of the run, coarser if thousands of files are written throughout it, and never
too early). So the figure is a lower bound, except for what no trace
shows: writes that the tracer misses (aio_write, pwritev, stores to mapped memory), and the disagreement of the
ranks' clocks. Unit: bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.batch import Batch, phases_and_files
from vani.analyzers.passes import SumsMeasure
from vani.analyzers.workload import Context, Ends, SurveyFindings, Workload
from vani.calls import Flag, Kind, Layer
from vani.columns import Bools, Ints, Numbers
from vani.kernels import ReachKind, columns

NAMING = Flag.OPEN | Flag.REMOVE | Flag.TRUNCATE


@dataclass(frozen=True, eq=False)
class LengthCalls:
    """Calls that determine a file's length, by process and file, in recorded order; shape (n,) each."""

    place: Numbers
    """Index among all calls of the batch."""
    key: Ints
    start: Ints
    end: Ints
    """End of a write, or length of a truncation."""
    writes: Bools
    empties: Bools
    cuts: Bools
    creates: Bools
    opens: Bools
    removes: Bools


_NONE = LengthCalls(*(np.empty(0, t) for t in (*[np.int64] * 4, *[np.bool_] * 6)))


def firsts(key: Ints) -> Ints:
    """Start of each run of equal keys."""
    return np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])


def length_calls(batch: Batch, *, writes: bool) -> LengthCalls:
    """These calls of a batch, including library calls that set the length; writes are included only on request."""
    groups = batch.groups
    flags, kind = groups.flags, groups.kind
    of = (kind == Kind.METADATA) & ((flags & (NAMING | Flag.RESIZE)) != 0)
    of = (of | ((kind == Kind.WRITE) & writes)) & groups.included
    rows = np.flatnonzero(of[batch.groups.codes]) if of.any() else np.empty(0, np.int64)
    library = _lengths_set_by_libraries(batch)
    if not len(rows) and not len(library):
        return _NONE
    place: Numbers = rows if batch.complete else batch.rows[rows]
    columns: list[Any] = [
        place,
        groups.process_file[batch.groups.codes[rows]],
        batch.start[rows],
        *(column[batch.groups.codes[rows]] for column in (flags, kind)),
        *(column[rows] for column in (batch.offset, batch.bytes)),
    ]
    if len(library):
        file = batch.files_of(library)
        workload = batch.context.workload
        process = batch.all_calls("rank")[library] + workload.process_base[batch.context.trace]
        others: list[Any] = [
            library,
            int_table.pack((process, file + 1), (workload.processes, workload.files + 1)),
            batch.starts_of(library),
            *(batch.all_calls(n)[library] for n in ("flags", "kind", "offset", "bytes")),
        ]
        columns = [np.concatenate(both) for both in zip(columns, others, strict=True)]
        columns = [column[np.argsort(columns[0])] for column in columns]
    _, _, _, flags, kind, offset, size = columns
    placed = offset != int_table.NO_VALUE
    determining = np.flatnonzero(
        np.where(kind == Kind.WRITE, placed & (size != int_table.NO_VALUE), placed | ((flags & NAMING) != 0))
    )
    order = determining[int_table.stable_order(columns[1][determining])]
    place, key, start, flags, kind, offset, size = (column[order] for column in columns)
    is_write = kind == Kind.WRITE
    opens = (flags & Flag.OPEN) != 0
    return LengthCalls(
        place,
        key,
        start,
        # A write of zero bytes does not extend a file.
        np.where(is_write, np.where(size > 0, offset + size, 0), np.maximum(offset, 0)),
        is_write,
        (flags & Flag.TRUNCATE) != 0,
        (flags & Flag.RESIZE) != 0,
        opens & ((flags & Flag.CREATE) != 0),
        opens,
        (flags & Flag.REMOVE) != 0,
    )


def _lengths_set_by_libraries(batch: Batch) -> Ints:
    if batch.complete:
        return np.empty(0, np.int64)
    rows = batch.flagged(Flag.RESIZE)
    if len(rows):
        rows = rows[batch.all_calls("layer")[rows] > Layer.STDIO]
        rows = rows[(batch.files_of(rows) >= 0) & (batch.all_calls("offset")[rows] != int_table.NO_VALUE)]
    return rows


_MOMENTS = 64
_WIDTH = _MOMENTS + 2
_KEY_MOMENT = int_table.key_widths(_WIDTH)
_STRETCH = (int_table.key_widths(_WIDTH**2)[0], _WIDTH, _WIDTH)
"""Widths of keys of file, and of the times of the last truncation and of the last write."""
_MOST = 1 << 20
_MARGIN_NS = 1_000_000_000
_MARGIN_SHARE = 10
_WRITES: dict[str, int_table.How] = {"reach": "max", "last": "max"}
_HOW: dict[str, int_table.How] = {**_WRITES, "reset": "max"}

_Writes = tuple[Ints, Ints, Ints]
"""Key of a write and its time, end and start, not merged."""
_Changes = tuple[Ints, Ints, Bools, _Writes]
_NO_KEY = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class LengthsResult:
    """`stretches`: bytes that processes wrote since they last emptied or truncated a file, by (file, moment of that,
    moment of the writes): time of that (-1: never), furthest end and last start of the writes (-1: none). `cuts`: the
    last truncation of each file: time and length. `given_up`: moments are no longer distinguished."""

    stretches: int_table.IntTable
    cuts: int_table.IntTable
    given_up: bool = False


@dataclass(frozen=True, eq=False)
class FileLengths:
    """Final lengths of files."""

    length: Ints
    """Shape (files,), bytes; `NO_VALUE` if nothing shows the length."""
    uncertain: Bools
    """Shape (files,): whether the order of several processes' calls is unknown."""


class Lengths:
    """See the module's docstring."""

    name = "lengths"
    result = FileLengths
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _LengthsCollector:
        return _LengthsCollector(context)

    def combine(self, parts: Sequence[LengthsResult]) -> LengthsResult:
        stretches_of_parts = [p.stretches for p in parts]
        given_up = any(p.given_up for p in parts)
        if given_up:
            stretches_of_parts = [_without_moments(s) for s in stretches_of_parts]
        stretches = int_table.IntTable.merged(stretches_of_parts, _HOW)
        if not given_up and len(stretches) > _MOST:
            stretches, given_up = _without_moments(stretches), True
        return LengthsResult(stretches, _latest([p.cuts for p in parts]), given_up)

    def aggregate(self, combined: LengthsResult, workload: Workload, findings: SurveyFindings) -> FileLengths:
        return FileLengths(*_lengths_of(workload, combined))


def _without_moments(stretches: int_table.IntTable) -> int_table.IntTable:
    if not len(stretches):
        return stretches
    columns = {"reset": np.full(len(stretches), -1), "reach": stretches["reach"], "last": stretches["last"]}
    return int_table.group(int_table.pack((int_table.unpack(stretches.keys, _STRETCH)[0], 0, 0), _STRETCH), columns,
        _HOW)


def _latest(parts: Sequence[int_table.IntTable]) -> int_table.IntTable:
    """The last truncation of each file; the longest of several at one time."""
    parts = [p for p in parts if len(p)]
    if not parts:
        return int_table.IntTable()
    file = np.concatenate([p.keys for p in parts])
    time, length = (np.concatenate([p[n] for p in parts]) for n in ("time", "length"))
    order = np.lexsort((length, time, file))
    last = order[np.append(file[order][1:] != file[order][:-1], True)]
    return int_table.IntTable(file[last], {"time": time[last], "length": length[last]})


class _Process:
    """State of the files of the process that may still have calls, by process and file; ascending."""

    def __init__(self) -> None:
        nothing = np.empty(0, np.int64)
        self.key, self.reset, self.gone = nothing, nothing, np.empty(0, np.bool_)
        """Time when it last emptied or truncated the file (-1: never), and whether its name is gone."""
        self.writes = int_table.IntTableBuilder(_WRITES)
        """Furthest end and last start of its later writes, by key and moment."""
        self.lowest, self.last = _NO_KEY, -1
        """Lower bound of the keys; and the largest key, -1 if there is none."""

    def known(self, key: Ints) -> tuple[Ints, Bools]:
        """`reset` and `gone` for given keys."""
        reset, gone = np.full(len(key), -1), np.zeros(len(key), np.bool_)
        if len(self.key):
            at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
            is_known = self.key[at] == key
            reset[is_known], gone[is_known] = self.reset[at][is_known], self.gone[at][is_known]
        return reset, gone

    def advance(self, key: Ints, reset: Ints, gone: Bools, writes: _Writes) -> None:
        """Add the next calls; a file that was emptied or truncated now loses its earlier writes."""
        was_reset = key[reset >= 0]
        if len(was_reset):
            self.keep_writes(lambda key: ~np.isin(key, was_reset))
        if len(writes[0]):
            self._see(int(writes[0].min()) // _WIDTH, int(writes[0].max()) // _WIDTH)
            key_moment, end, start = writes
            self.writes.add(key_moment, {"reach": end, "last": start})
        if not len(key):
            return
        self._see(int(key[0]), int(key[-1]))
        before, _ = self.known(key)
        reset = np.where(reset >= 0, reset, before)
        left = ~np.isin(self.key, key)
        key = np.concatenate((self.key[left], key))
        order = np.argsort(key, kind="stable")
        self.key, self.reset = key[order], np.concatenate((self.reset[left], reset))[order]
        self.gone = np.concatenate((self.gone[left], gone))[order]

    def _see(self, lowest: int, last: int) -> None:
        self.lowest, self.last = min(self.lowest, lowest), max(self.last, last)

    def keep_writes(self, chosen: Callable[[Ints], Bools]) -> None:
        """Drop the writes whose keys are not chosen."""
        writes = self.writes.table()
        rows = chosen(int_table.unpack(writes.keys, _KEY_MOMENT)[0])
        self.writes = int_table.IntTableBuilder(_WRITES, writes.where(rows))

    def split(self, first: int) -> tuple[_Process, _Process]:
        """Split into the keys below `first`, and the others."""
        writes, parts = self.writes.table(), (_Process(), _Process())
        for part, rows in zip(parts, (self.key < first, self.key >= first), strict=True):
            part.key, part.reset, part.gone = self.key[rows], self.reset[rows], self.gone[rows]
            part.writes = int_table.IntTableBuilder(_WRITES, writes)
        parts[0].keep_writes(lambda key: key < first)
        parts[1].keep_writes(lambda key: key >= first)
        parts[1].lowest, parts[1].last = first, self.last
        return parts


class _LengthsCollector:
    def __init__(self, context: Context) -> None:
        self._of_file = (context.workload.processes, context.workload.files + 1)
        """Widths of keys of process and file + 1."""
        self._moment = max(1, -(-(context.workload.span_ns + 1) // _MOMENTS))
        self._process = _Process()
        self._parts: list[int_table.IntTable] = []
        self._cuts: list[int_table.IntTable] = []
        self._given_up = False

    def add(self, batch: Batch) -> None:
        changes = self._compiled(batch) or self._changes_by_call(length_calls(batch, writes=True))
        self._process.advance(*changes)
        last = self._process.last
        # The first possible key of its process.
        first = last - last % self._of_file[1]
        if self._process.lowest < first:
            done, self._process = self._process.split(first)
            self._finish(done)

    def _compiled(self, batch: Batch) -> _Changes | None:
        """Like `_changes_by_call`, with a kernel that handles the writes; None if numpy must do it."""
        groups = batch.groups
        determines = (groups.flags & (NAMING | Flag.RESIZE)) != 0
        writes = (groups.kind == Kind.WRITE) & groups.included
        if (determines & writes).any():
            return None
        others = length_calls(batch, writes=False)
        key, last, reset, gone = self._resets(others)
        after: Ints | None = None
        if len(key):
            # The first counted call of the batch after the last reset.
            place = np.where(last >= 0, others.place[np.maximum(last, 0)] + 1, 0)
            place = place if batch.complete else np.searchsorted(batch.rows, place)
            after = int_table.IntTable(key, {"after": place}).at(groups.process_file, "after")
        out = batch.call(
            *("reach", "offset", "bytes", "start"),
            what=np.where(writes, ReachKind.WRITES, ReachKind.LEFT_OUT),
            length=self._moment,
            most=_MOMENTS,
            level=0,
            empty=True,
            after=after,
        )
        if out is None:
            return None
        self._keep_cuts(others)
        of, moment, end, start = columns(out["reached"])
        cell = int_table.pack((groups.process_file[of], moment + 1), _KEY_MOMENT)
        return key, reset, gone, (cell, end, start)

    def _changes_by_call(self, calls: LengthCalls) -> _Changes:
        """Files by process, when they were last reset, whether they are gone, and the writes since then."""
        key, last, reset, gone = self._resets(calls)
        since = np.repeat(last, np.diff(np.append(firsts(calls.key), len(calls.key))))
        rows = np.flatnonzero(calls.writes & (np.arange(len(since)) > since))
        cell = int_table.pack((calls.key[rows], self._moment_of(calls.start[rows])), _KEY_MOMENT)
        self._keep_cuts(calls)
        return key, reset, gone, (cell, calls.end[rows], calls.start[rows])

    def _resets(self, calls: LengthCalls) -> tuple[Ints, Ints, Ints, Bools]:
        """Files by process: the last call that reset them (-1: none) and its time, and whether they are gone."""
        first = firsts(calls.key)
        key = calls.key[first]
        _, gone = self._process.known(key)
        if not len(key):
            return key, key, key, gone
        group_of = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(calls.key))))
        # A file opened with O_CREAT is new if the process removed the name before.
        naming = np.flatnonzero(calls.opens | calls.removes)
        behind = gone[group_of[naming]]
        same = group_of[naming][1:] == group_of[naming][:-1]
        behind[1:][same] = calls.removes[naming][:-1][same]
        gone[group_of[naming]] = calls.removes[naming]
        resets = calls.empties | calls.cuts
        resets[naming] |= behind & calls.creates[naming]
        last = np.maximum.reduceat(np.where(resets, np.arange(len(resets)), -1), first)
        return key, last, np.where(last >= 0, calls.start[np.maximum(last, 0)], -1), gone

    def _keep_cuts(self, calls: LengthCalls) -> None:
        cut = np.flatnonzero(calls.cuts)
        if len(cut):
            file = int_table.unpack(calls.key[cut], self._of_file)[1] - 1
            cuts = int_table.IntTable(file, {"time": calls.start[cut], "length": calls.end[cut]})
            self._cuts = [_latest([*self._cuts, cuts])]

    def _moment_of(self, time: Ints) -> Ints:
        """Moments count from 1; 0 means no such moment."""
        return np.where(time >= 0, np.minimum(time // self._moment, _MOMENTS) + 1, 0)

    def _finish(self, done: _Process) -> None:
        writes = done.writes.table()
        key, _ = int_table.unpack(writes.keys, _KEY_MOMENT)
        reset, _ = done.known(key)
        silent = (done.reset >= 0) & ~np.isin(done.key, key)
        nothing = np.full(int(silent.sum()), -1)
        file = int_table.unpack(np.concatenate((key, done.key[silent])), self._of_file)[1] - 1
        columns = {
            "reset": np.concatenate((reset, done.reset[silent])),
            "reach": np.concatenate((writes["reach"] if len(writes) else nothing[:0], nothing)),
            "last": np.concatenate((writes["last"] if len(writes) else nothing[:0], nothing)),
        }
        if not len(file):
            return
        moments = (self._moment_of(columns[n]) for n in ("reset", "last"))
        self._parts.append(int_table.group(int_table.pack((file, *moments), _STRETCH), columns, _HOW))
        if len(self._parts) > 64:
            self._shrink()

    def _shrink(self) -> None:
        whole = Lengths().combine([LengthsResult(p, int_table.IntTable(), self._given_up) for p in self._parts])
        self._parts, self._given_up = [whole.stretches], whole.given_up

    def result(self) -> LengthsResult:
        self._finish(self._process)
        self._shrink()
        cuts = self._cuts[0] if self._cuts else int_table.IntTable()
        return LengthsResult(self._parts[0].packed(), cuts, self._given_up)


def _lengths_of(workload: Workload, result: LengthsResult) -> tuple[Ints, Bools]:
    """Final length of each file (`NO_VALUE` if nothing shows it), and whether it is uncertain; shape (files,).

    A file that was finally emptied, without a recorded write since, has unknown length: whatever filled it
    may have left no record.
    """
    known = workload.known_sizes
    length, uncertain = known.copy(), np.zeros(workload.files, np.bool_)
    table = result.stretches
    if not len(table):
        return length, uncertain
    file, _, _ = int_table.unpack(table.keys, _STRETCH)
    reset, reach, last = table["reset"], table["reach"], table["last"]
    when = np.full(workload.files, -1)
    np.maximum.at(when, file, reset)
    was_cut = np.zeros(workload.files, np.bool_)
    cuts = result.cuts
    if len(cuts):
        was_cut[cuts.keys] = cuts["time"] == when[cuts.keys]
    is_reset = when >= 0
    length[is_reset] = int_table.NO_VALUE
    length[cuts.keys[was_cut[cuts.keys]]] = cuts["length"][was_cut[cuts.keys]] if len(cuts) else 0
    margin = max(_MARGIN_NS, workload.span_ns // _MARGIN_SHARE)
    own = (reset >= 0) & (reset >= when[file] - margin)
    strict = (was_cut & (length > 0))[file]
    counts = np.where(strict, own | (last > when[file] + margin), last >= when[file] - margin)
    counts &= reach >= 0
    np.maximum.at(length, file[counts], reach[counts])
    near = strict & ~counts & (reach >= 0) & (last >= when[file] - margin)
    uncertain[file[near]] = reach[near] > length[file[near]]
    return length, uncertain


@dataclass(frozen=True, eq=False)
class BeyondEnds:
    """Per phase and listed file; shape (n,) each."""

    phase: Ints
    file: Ints
    """-1 for no file or an unlisted one."""
    beyond: Ints
    """**Bytes past the end**: bytes that reads requested past the end."""
    reads: Ints
    """Number of reads on files with a known end."""


class PastEnd(SumsMeasure):
    """Table `past_end` by listed phase and file: bytes beyond the end, and reads on files with a known end."""

    name = "past_end"
    result = BeyondEnds
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns", "duration_ns"})

    def add(self, batch: Batch, sums: int_table.SumsBuilder) -> None:
        ends, groups = batch.known_findings.ends, batch.groups
        if not len(ends.known):
            return
        named = np.maximum(groups.file, 0)
        reads_known = (groups.kind == Kind.READ) & (groups.file >= 0) & ends.known[named]
        if not reads_known.any():
            return
        beyond, reads = _past_end(batch, reads_known, ends)
        some = reads > 0
        columns = {"beyond": beyond[some], "reads": reads[some]}
        sums.add("past_end", groups.listed_phase_file_key[some], columns)

    def aggregate(self, combined: int_table.Sums, workload: Workload, findings: SurveyFindings) -> BeyondEnds:
        table = combined["past_end"]
        phase, file = phases_and_files(table.keys, workload, findings)
        return BeyondEnds(phase, file, table["beyond"], table["reads"])


def _past_end(batch: Batch, reading: Bools, ends: Ends) -> tuple[Ints, Ints]:
    """Bytes past the end and number of reads, by group; `reading`: groups that read files with a known end."""
    codes, file = batch.groups.codes, batch.groups.file
    rows = np.flatnonzero(reading[codes] & (batch.bytes != int_table.NO_VALUE) & (batch.offset != int_table.NO_VALUE))
    rows = rows[np.flatnonzero(batch.end[rows] >= ends.since[file][codes[rows]])]
    begin, size, grouped = batch.offset[rows], batch.bytes[rows], int_table.Factorized(np.arange(len(file)),
        codes[rows])
    beyond = begin + size - np.maximum(begin, ends.at(file[codes[rows]], batch.end[rows]))
    return grouped.sum(np.clip(beyond, 0, size)), grouped.count()
