"""Writes huge Recorder traces in little memory: `python -m tests.traces.trace_generator OUT --calls 1e8 ...`.

Every rank opens its files one after the other, makes its data calls on each and closes it:

    start rule   S0 S1 S2 ...                       one session per file
    session Sj   open, P^k, a part of P, close      k so often that the calls wanted are reached
    period P     C0 C1 ... Cq                       visits every signature of the file
    rule Cq      --calls-per-rule terminals

so the grammar is known without ever writing out the sequence. Time stamps are drawn in chunks and deflated on the
way to disk. The contents of the trace (calls by function, bytes) are counted from the same rules and printed as
JSON: an independent source for the numbers of a reader.

    consecutive   write^n, read^n: two signatures per file
    strided       seek relative and write, then seek relative and read
    random        pwrite and pread at --symbols offsets per rank, each a signature of its own
    mixed         the above with fsync and MPI_File_write_at / read_at around POSIX calls one level deeper

Memory: one chunk of time stamps, the grammar of 4096 files, four bytes per signature and a few numbers
per rank.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tests.traces.recorder_writer import (
    CallTableEntry,
    default_functions,
    encode_cst,
    encode_key,
    encode_metadata,
)

__all__ = ["Generated", "GeneratedLayout", "Pattern", "Workload", "count", "generate_trace", "main"]

Pattern = Literal["consecutive", "strided", "random", "mixed"]
GeneratedLayout = Literal["2.5p", "2.5g", "3.0"]

_CHUNK = 1 << 20
"""Number of time stamps drawn at a time; 8 bytes each on disk."""
_FILES_AT_ONCE = 4096
_SYMBOLS_PER_FILE = 16
_MAX_INT = 2**31 - 1
_VERSIONS: dict[GeneratedLayout, str] = {"2.5p": "2.5.0", "2.5g": "2.5.0", "3.0": "3.0.0"}


@dataclass(frozen=True)
class Workload:
    """The trace to generate.

    `files` are divided among the ranks or, with `shared_grammar`, all visited by every rank.
    `symbols` is the number of distinct data calls of a rank (0: 16 per file); `transfer` is in bytes.
    Without `times` the trace has a grammar and a call table but no time stamps.
    """

    calls: int
    ranks: int = 1
    files: int = 1
    pattern: Pattern = "mixed"
    layout: GeneratedLayout = "3.0"
    calls_per_rule: int = 100
    symbols: int = 0
    transfer: int = 65536
    shared_grammar: bool = False
    interprocess: bool | None = None
    times: bool = True
    zlib_level: int = 6
    seed: int = 0

    @property
    def framed(self) -> bool:
        return self.layout != "2.5p"

    @property
    def merged(self) -> bool:
        """One call table for all ranks."""
        return self.shared_grammar or (self.framed if self.interprocess is None else self.interprocess)

    def files_of(self, rank: int) -> range:
        if self.shared_grammar:
            return range(self.files)
        if self.files < self.ranks:
            return range(rank % self.files, rank % self.files + 1)
        return range(rank * self.files // self.ranks, (rank + 1) * self.files // self.ranks)

    def calls_of(self, rank: int) -> int:
        return self.calls // self.ranks + (rank < self.calls % self.ranks)

    def most_files_of_a_rank(self) -> int:
        return self.files if self.shared_grammar else max(1, -(-self.files // self.ranks))

    def fewest_calls_of_a_file(self) -> int:
        return self.calls // self.ranks // self.most_files_of_a_rank()


@dataclass(frozen=True)
class Generated:
    """The written contents, counted from the rules; bytes are those of POSIX calls at any depth."""

    calls: int
    ranks: int
    files: int
    signatures: int
    grammars: int
    bytes_read: int
    bytes_written: int
    calls_by_function: dict[str, int]
    seconds: float
    seconds_in_zlib: float


@dataclass(frozen=True)
class _Slot:
    """One signature of a file; `{path}` and `{handle}` in `args` differ from file to file."""

    function: str
    args: tuple[str, ...]
    depth: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class _Shape:
    """The signatures of every file and their order in a session.

    A unit is a run of calls that belong together. `room` is the least number of data calls of a session.
    """

    slots: tuple[_Slot, ...]
    opening: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
    closing: tuple[int, ...]
    room: int
    is_shuffled: bool

    @property
    def fixed(self) -> int:
        """Calls of a session that are not data calls."""
        return len(self.opening) + len(self.closing)


@dataclass(frozen=True)
class _Session:
    """Calls on one file: `opening`, the whole period `repeats` times, its first `rest` calls, `closing`."""

    repeats: int
    rest: int


def generate_trace(directory: Path, workload: Workload) -> Generated:
    """Write the trace that `workload` describes into `directory`, which is made.

    Raises
    ------
    ValueError
        There are too few calls to open, use and close every file, or too many signatures for 31-bit ids.
    """
    return _Generator(directory, workload).run()


class _Frame:
    """A part of a file that is deflated while it is written; its two sizes are filled in at the end."""

    seconds_in_zlib = 0.0
    """Total over all frames of this process."""

    def __init__(self, file: BinaryIO, *, framed: bool, level: int) -> None:
        self.file = file
        self.deflate = zlib.compressobj(level) if framed else None
        self.pending: list[bytes] = []
        self.pending_bytes = self.plain = self.spilled = 0
        self.begin: int | None = None

    def write(self, content: bytes | memoryview) -> None:
        self.plain += len(content)
        if self.deflate is None:
            self.file.write(content)
            return
        begin = time.perf_counter()
        self._keep(self.deflate.compress(content))
        _Frame.seconds_in_zlib += time.perf_counter() - begin
        if self.pending_bytes > 1 << 20:
            self._spill()

    def close(self) -> int:
        """Finish; return the bytes written to the file, header included."""
        if self.deflate is None:
            return self.plain
        begin = time.perf_counter()
        self._keep(self.deflate.flush())
        _Frame.seconds_in_zlib += time.perf_counter() - begin
        if self.begin is None:
            # Most frames of a trace with many ranks are small, and need no seeking.
            self.file.write(struct.pack("<QQ", self.pending_bytes, self.plain))
            self.file.writelines(self.pending)
            return 16 + self.pending_bytes
        self._spill()
        self.file.seek(self.begin)
        self.file.write(struct.pack("<QQ", self.spilled, self.plain))
        self.file.seek(0, 2)
        return 16 + self.spilled

    def _keep(self, packed: bytes) -> None:
        self.pending.append(packed)
        self.pending_bytes += len(packed)

    def _spill(self) -> None:
        if self.begin is None:
            self.begin = self.file.tell()
            self.file.write(bytes(16))
        self.file.writelines(self.pending)
        self.spilled += self.pending_bytes
        self.pending, self.pending_bytes = [], 0


_Program = tuple[NDArray[np.int32], int, _Session, _Session]


class _Generator:
    def __init__(self, directory: Path, workload: Workload) -> None:
        self.directory, self.workload = directory, workload
        self.shape = _shape_of(workload)
        self.slots = len(self.shape.slots)
        if self.slots * (workload.files if workload.merged else workload.most_files_of_a_rank()) > _MAX_INT:
            raise ValueError("more than 2^31 signatures; take fewer files or --symbols")
        self.depth = np.array([slot.depth for slot in self.shape.slots], dtype=np.uint32)
        functions = default_functions(workload.layout)
        self.function_ids = {name: functions.index(name) for name in {s.function for s in self.shape.slots}}
        self.functions = functions
        self.totals = np.zeros(self.slots, dtype=np.int64)
        self.entries: dict[int, _Entries] = {}
        self.times_file: BinaryIO | None = None
        self.time_sizes = np.zeros(workload.ranks, dtype="<u8")
        self.unit_slots = np.array([slot for unit in self.shape.units for slot in unit], dtype=np.int32)
        self.unit_lengths = np.array([len(unit) for unit in self.shape.units])
        self.unit_starts = np.cumsum(self.unit_lengths) - self.unit_lengths

    def run(self) -> Generated:
        begin, zlib_before = time.perf_counter(), _Frame.seconds_in_zlib
        self.directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if self.workload.framed:
                self.times_file = stack.enter_context((self.directory / "recorder.ts").open("wb"))
                self.times_file.write(self.time_sizes.tobytes())
            grammars = self._write_merged_parts() if self.workload.merged else self._write_parts_per_rank()
            if self.times_file is not None:
                self.times_file.seek(0)
                self.times_file.write(self.time_sizes.tobytes())
        (self.directory / "VERSION").write_text(_VERSIONS[self.workload.layout])
        (self.directory / "recorder.mt").write_bytes(
            encode_metadata(
                self.workload.layout,
                self.functions,
                ranks=self.workload.ranks,
                interprocess=self.workload.merged,
            )
        )
        by_function: Counter[str] = Counter()
        for slot, count in zip(self.shape.slots, self.totals.tolist(), strict=True):
            by_function[slot.function] += count
        return Generated(
            calls=int(self.totals.sum()),
            ranks=self.workload.ranks,
            files=self.workload.files,
            signatures=self.workload.files * self.slots,
            grammars=grammars,
            bytes_read=self._total_of([slot.bytes_read for slot in self.shape.slots]),
            bytes_written=self._total_of([slot.bytes_written for slot in self.shape.slots]),
            calls_by_function=dict(by_function),
            seconds=round(time.perf_counter() - begin, 3),
            seconds_in_zlib=round(_Frame.seconds_in_zlib - zlib_before, 3),
        )

    def _total_of(self, sizes: list[int]) -> int:
        return sum(size * count for size, count in zip(sizes, self.totals.tolist(), strict=True))

    def _frame(self, file: BinaryIO) -> _Frame:
        return _Frame(file, framed=self.workload.framed, level=self.workload.zlib_level)

    def _program_of(self, rank: int) -> _Program:
        """Return the period (slots), the number of files, the session of all but the last, and the last's."""
        period = self._period_of(rank)
        files, calls = len(self.workload.files_of(rank)), self.workload.calls_of(rank)
        usual = calls // files
        last = calls - usual * (files - 1)
        sessions = [_Session(*divmod(c - self.shape.fixed, period.size)) for c in (usual, last)]
        return period, files, sessions[0], sessions[1]

    def _period_of(self, rank: int) -> NDArray[np.int32]:
        units, length = self.shape.units, self.workload.calls_per_rule
        if not self.shape.is_shuffled:
            # No longer than the shortest session: every signature is called on every file.
            each = max(1, min(length, self.shape.room) // sum(map(len, units)))
            return np.array([slot for unit in units for slot in unit * each], dtype=np.int32)
        random = np.random.default_rng([self.workload.seed, 0 if self.workload.shared_grammar else rank])
        # Every unit once, then any until the last rule is full.
        order = random.permutation(len(units))
        more = random.integers(0, len(units), size=-sum(map(len, units)) % length)
        first, count = self.unit_starts, self.unit_lengths
        reached = sum(map(len, units)) + np.concatenate([[0], np.cumsum(count[more])])
        full = np.flatnonzero(reached % length == 0)
        chosen = np.concatenate([order, more[: full[0]] if full.size else more])
        ends = np.cumsum(count[chosen])
        # Positions of the chosen units' slots: each unit's first, and those behind it.
        within = np.arange(ends[-1]) + np.repeat(first[chosen] - ends + count[chosen], count[chosen])
        return self.unit_slots[within]

    def _counts_of(self, period: NDArray[np.int32], session: _Session) -> NDArray[np.int64]:
        """Return the calls of one session, by slot."""
        fixed = np.array([*self.shape.opening, *self.shape.closing])
        counts = np.bincount(period, minlength=self.slots) * session.repeats
        counts += np.bincount(period[: session.rest], minlength=self.slots)
        counted: NDArray[np.int64] = counts + np.bincount(fixed, minlength=self.slots)
        return counted

    def _write_merged_parts(self) -> int:
        workload, framed = self.workload, self.workload.framed
        counts = np.zeros((workload.files, self.slots), dtype=np.uint32)
        grammar_ids: dict[tuple[range, int, int], int] = {}
        grammar_of_rank = np.empty(workload.ranks + 1, dtype="<i4")
        shared_file = (self.directory / "ug.cfg").open("wb") if framed else None
        for rank in range(workload.ranks):
            files = workload.files_of(rank)
            period, n, usual, last = whole = self._program_of(rank)
            self._write_times(rank, whole)
            usual_counts = last_counts = self._counts_of(period, usual)
            if last != usual:
                last_counts = self._counts_of(period, last)
            self.totals += usual_counts * (n - 1) + last_counts
            counts[files.start : files.stop - 1] += usual_counts.astype(np.uint32)
            counts[files.stop - 1] += last_counts.astype(np.uint32)
            is_own = self.shape.is_shuffled and not workload.shared_grammar
            program = (files, workload.calls_of(rank), rank if is_own else 0)
            new = program not in grammar_ids
            grammar_of_rank[rank] = u = grammar_ids.setdefault(program, len(grammar_ids))
            if not new:
                continue
            base = files.start * self.slots
            if shared_file is not None:
                self._write_grammar(shared_file, base, period, n, usual, last)
            else:
                with (self.directory / f"{u}.cfg").open("wb") as file:
                    self._write_grammar(file, base, period, n, usual, last)
        if shared_file is not None:
            shared_file.close()
        grammar_of_rank[-1] = len(grammar_ids)
        (self.directory / "ug.mt").write_bytes(grammar_of_rank.tobytes())
        with (self.directory / ("recorder.cst" if framed else "0.cst")).open("wb") as file:
            self._write_table(file, range(workload.files), counts)
        return len(grammar_ids)

    def _write_parts_per_rank(self) -> int:
        for rank in range(self.workload.ranks):
            period, n, usual, last = whole = self._program_of(rank)
            self._write_times(rank, whole)
            counts = np.empty((n, self.slots), dtype=np.uint32)
            counts[:-1] = usual_counts = self._counts_of(period, usual)
            counts[-1] = last_counts = self._counts_of(period, last)
            self.totals += usual_counts * (n - 1) + last_counts
            with (self.directory / f"{rank}.cfg").open("wb") as file:
                self._write_grammar(file, 0, period, n, usual, last)
            with (self.directory / f"{rank}.cst").open("wb") as file:
                self._write_table(file, self.workload.files_of(rank), counts, rank=rank)
        return self.workload.ranks

    def _write_table(
        self, file: BinaryIO, files: range, counts: NDArray[np.uint32], *, rank: int | None = None
    ) -> None:
        frame = self._frame(file)
        frame.write(struct.pack("<i", counts.size))
        numbers = np.arange(files.start, files.stop)
        first = self._first_ranks_of(numbers) if rank is None else np.full(len(numbers), rank)
        # If the number of a file has as many digits, its entries have the same bytes except for a few.
        at = 0
        while at < len(numbers):
            longer = 10 ** len(str(numbers[at]))
            end = min(at + _FILES_AT_ONCE, len(numbers), max(at + 1, longer - files.start))
            some = slice(at, end)
            frame.write(
                self._entries_of(len(str(numbers[at]))).of_files(numbers[some], first[some], counts[some], at)
            )
            at = end
        frame.close()

    def _entries_of(self, digits: int) -> _Entries:
        if digits not in self.entries:
            self.entries[digits] = _Entries.of(self, digits)
        return self.entries[digits]

    def encode_file(self, folder: str, part: str, handle: str) -> list[bytes]:
        """Encode the entries of one file, with all numbers 0, and names made from the given parts."""
        path = f"/lustre/scratch/run/{folder}/part-{part}.dat"
        encoded = []
        for slot in self.shape.slots:
            args = [
                arg.format(path=path, handle=f"0-{handle}") if arg[0] == "{" else arg for arg in slot.args
            ]
            key = encode_key(
                self.function_ids[slot.function], args, layout=self.workload.layout, depth=slot.depth
            )
            encoded.append(encode_cst([CallTableEntry(0, 0, 0, key)], layout=self.workload.layout)[4:])
        return encoded

    def _first_ranks_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.workload.shared_grammar:
            return np.zeros_like(numbers)
        if self.workload.files < self.workload.ranks:
            return numbers
        # The largest rank whose range begins at or before the file.
        ranks: NDArray[np.int64] = ((numbers + 1) * self.workload.ranks - 1) // self.workload.files
        return ranks

    def _write_grammar(
        self,
        file: BinaryIO,
        base: int,
        period: NDArray[np.int32],
        files: int,
        usual: _Session,
        last: _Session,
    ) -> None:
        usual_rules = self._session_rules(period, usual)
        last_rules = usual_rules if last == usual else self._session_rules(period, last)
        ids_per_file = 2 + -(-period.size // self.workload.calls_per_rule)
        if ids_per_file * files + 2 > _MAX_INT:
            raise ValueError("more than 2^31 rules; take fewer files or more --calls-per-rule")
        frame = self._frame(file)
        rules = 1 + usual_rules.rules * (files - 1) + last_rules.rules
        frame.write(np.array([rules, -1, files], dtype="<i4").tobytes())
        for i in range(0, files, _CHUNK):
            sessions = -2 - ids_per_file * np.arange(i, min(i + _CHUNK, files))
            frame.write(np.stack([sessions, np.ones_like(sessions)], axis=1).astype("<i4").tobytes())
        for i in range(0, files - 1, _FILES_AT_ONCE):
            numbers = np.arange(i, min(i + _FILES_AT_ONCE, files - 1))
            frame.write(usual_rules.of_files(numbers, base=base, slots=self.slots, ids_per_file=ids_per_file))
        only = np.array([files - 1])
        frame.write(last_rules.of_files(only, base=base, slots=self.slots, ids_per_file=ids_per_file))
        frame.close()

    def _session_rules(self, period: NDArray[np.int32], session: _Session) -> _SessionRules:
        """Make the rules of one file; session, period and parts have the ids 0, 1 and 2, 3, ..."""
        size = self.workload.calls_per_rule
        parts = [_terminals(period[i : i + size]) for i in range(0, period.size, size)]
        whole = session.rest // size
        body: list[_Symbol] = [("terminal", slot, 1) for slot in self.shape.opening]
        if session.repeats:
            body += _repeated("rule", 1 if len(parts) > 1 else 2, session.repeats)
        body += [("rule", 2 + q, 1) for q in range(whole)]
        body += _terminals(period[whole * size : session.rest])
        body += [("terminal", slot, 1) for slot in self.shape.closing]
        rules: dict[int, list[_Symbol]] = {0: body}
        if session.repeats and len(parts) > 1:
            rules[1] = [("rule", 2 + q, 1) for q in range(len(parts))]
        rules |= {2 + q: part for q, part in enumerate(parts if session.repeats else parts[:whole])}
        return _SessionRules.of(rules)

    def _write_times(self, rank: int, program: _Program) -> None:
        if self.times_file is None:
            with (self.directory / f"{rank}.ts").open("wb") as file:
                self._write_times_of(rank, program, self._frame(file))
        elif self.workload.times:
            self.time_sizes[rank] = self._write_times_of(rank, program, self._frame(self.times_file))

    def _write_times_of(self, rank: int, program: _Program, frame: _Frame) -> int:
        if not self.workload.times:
            return frame.close()
        random = np.random.default_rng([self.workload.seed, 1, rank])
        before = 10 * (1 + rank % 1000)
        for depth in self._depths(rank, program):
            pairs, before = _draw_times(random, depth, before)
            frame.write(pairs.data.cast("B"))
        return frame.close()

    def _depths(self, rank: int, program: _Program) -> Iterator[NDArray[np.uint32] | int]:
        """Yield the depths of the calls of a rank in chunks, or their number if all are 0.

        A call and the one inside it are never in different chunks.
        """
        if not self.depth.any():
            calls = self.workload.calls_of(rank)
            yield from (min(_CHUNK, calls - i) for i in range(0, calls, _CHUNK))
            return
        period, files, usual, last = program
        inside = self.depth[period]
        chunk: list[NDArray[np.uint32]] = []
        for session, times in ((usual, files - 1), (last, 1)):
            for piece in self._session_depths(inside, session, times):
                chunk.append(piece)
                if sum(part.size for part in chunk) >= _CHUNK:
                    yield np.concatenate(chunk)
                    chunk = []
        if chunk:
            yield np.concatenate(chunk)

    def _session_depths(
        self, inside: NDArray[np.uint32], session: _Session, times: int
    ) -> Iterator[NDArray[np.uint32]]:
        opening, closing = self.depth[list(self.shape.opening)], self.depth[list(self.shape.closing)]
        size = session.repeats * inside.size + session.rest + self.shape.fixed
        if size < _CHUNK:
            whole = np.concatenate(
                [opening, np.tile(inside, session.repeats), inside[: session.rest], closing]
            )
            at_once = _CHUNK // size
            for i in range(0, times, at_once):
                yield np.tile(whole, min(at_once, times - i))
            return
        at_once = max(1, _CHUNK // inside.size)
        block = np.tile(inside, at_once)
        for _ in range(times):
            yield opening
            for i in range(0, session.repeats, at_once):
                yield block[: inside.size * min(at_once, session.repeats - i)]
            yield inside[: session.rest]
            yield closing


@dataclass(frozen=True)
class _Entries:
    """The entries of one file in the call table as bytes, with the positions that differ between files."""

    content: NDArray[np.uint8]
    starts: NDArray[np.intp]
    """Of each entry: terminal, rank, length of the key, count."""
    folders: NDArray[np.intp]
    parts: NDArray[np.intp]
    handles: NDArray[np.intp]
    digits: int

    @classmethod
    def of(cls, generator: _Generator, digits: int) -> _Entries:
        """Find the places by encoding names that differ in one part only; `digits` are those of the file's number."""
        names = ["0" * len(f"{10 ** (digits - 1) // 1000:04d}"), "0" * max(7, digits), "0" * digits]
        encoded = generator.encode_file(*names)
        content = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        places = []
        for i in range(3):
            other = [name.replace("0", "1") if i == j else name for j, name in enumerate(names)]
            places.append(
                np.flatnonzero(content != np.frombuffer(b"".join(generator.encode_file(*other)), np.uint8))
            )
        starts = np.cumsum([0, *(len(entry) for entry in encoded[:-1])])
        return cls(content, starts, *places, digits)

    def of_files(
        self, numbers: NDArray[np.int64], first: NDArray[np.int64], counts: NDArray[np.uint32], file: int
    ) -> bytes:
        """Encode the entries of files; the first of them is the table's file number `file`."""
        rows = np.repeat(self.content[None, :], numbers.size, axis=0)
        for places, values, width in (
            (self.folders, numbers // 1000, len(f"{10 ** (self.digits - 1) // 1000:04d}")),
            (self.parts, numbers, max(7, self.digits)),
            (self.handles, numbers, self.digits),
        ):
            powers = 10 ** np.arange(width - 1, -1, -1)
            written = (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)
            rows[:, places] = np.tile(written, len(places) // width)
        slots = len(self.starts)
        terminals = slots * np.arange(file, file + numbers.size)[:, None] + np.arange(slots)
        for at, integers in ((0, terminals), (4, np.repeat(first[:, None], slots, axis=1)), (12, counts)):
            places = (self.starts[:, None] + at + np.arange(4)).reshape(-1)
            rows[:, places] = integers.astype("<u4").view(np.uint8).reshape(numbers.size, -1)
        return rows.tobytes()


_Symbol = tuple[Literal["terminal", "rule"], int, int]


@dataclass(frozen=True)
class _SessionRules:
    """The rules of one file as ints, with the positions that differ between files."""

    rules: int
    numbers: NDArray[np.int64]
    terminals: NDArray[np.intp]
    rule_ids: NDArray[np.intp]

    @classmethod
    def of(cls, rules: dict[int, list[_Symbol]]) -> _SessionRules:
        numbers: list[int] = []
        terminals: list[int] = []
        rule_ids: list[int] = []
        for rule, symbols in rules.items():
            rule_ids.append(len(numbers))
            numbers += (-2 - rule, len(symbols))
            for kind, value, exponent in symbols:
                (terminals if kind == "terminal" else rule_ids).append(len(numbers))
                numbers += (value if kind == "terminal" else -2 - value, exponent)
        return cls(
            len(rules),
            np.array(numbers),
            np.array(terminals, dtype=np.intp),
            np.array(rule_ids, dtype=np.intp),
        )

    def of_files(self, numbers: NDArray[np.int64], *, base: int, slots: int, ids_per_file: int) -> bytes:
        rows = np.repeat(self.numbers[None, :], numbers.size, axis=0)
        rows[:, self.terminals] += base + slots * numbers[:, None]
        rows[:, self.rule_ids] -= ids_per_file * numbers[:, None]
        return rows.astype("<i4").tobytes()


def _repeated(kind: Literal["terminal", "rule"], value: int, times: int) -> list[_Symbol]:
    """Write `times` repeats as symbols whose exponents fit 31 bits."""
    many, rest = divmod(times, _MAX_INT)
    return [(kind, value, _MAX_INT)] * many + ([(kind, value, rest)] if rest else [])


def _terminals(sequence: NDArray[np.int32]) -> list[_Symbol]:
    if sequence.size == 0:
        return []
    heads = np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
    exponents = np.diff(np.append(heads, sequence.size))
    return [
        ("terminal", value, exponent)
        for value, exponent in zip(sequence[heads].tolist(), exponents.tolist(), strict=True)
    ]


def _draw_times(
    random: np.random.Generator, depth: NDArray[np.uint32] | int, before: int
) -> tuple[NDArray[np.uint32], int]:
    """Draw the pairs (start, end) of a chunk, in ticks since the start of the call before; n x 2.

    Times are whole microseconds, like the tracer's clock: 1-64 us per call, 1-16 us between calls. A call of depth
    1 is inside the preceding one, 1 us from both ends. `before` is the rest of the previous chunk's last call; that
    of this chunk is returned, too.
    """
    n = depth if isinstance(depth, int) else depth.size
    draws = random.integers(0, 1 << 10, size=n, dtype=np.uint16)
    lasts = ((draws & 63) + 1).astype(np.uint32) * np.uint32(10)
    pairs = np.empty((n, 2), dtype="<u4")
    start, end = pairs[:, 0], pairs[:, 1]
    start[:] = (draws >> 6).astype(np.uint32) * np.uint32(10) + np.uint32(10)
    left = lasts
    if not isinstance(depth, int):
        inner = depth == 1
        lasts[:-1][inner[1:]] = lasts[1:][inner[1:]] + np.uint32(20)
        left = lasts + np.uint32(10) * inner
    start[1:] += left[:-1]
    start[0] += before
    if not isinstance(depth, int):
        start[inner] = 10
    np.add(start, lasts, out=end)
    return pairs, int(left[-1])


def _shape_of(workload: Workload) -> _Shape:
    size, path = str(workload.transfer), "{path}"
    open_, close = _Slot("open", (path, "66", "436")), _Slot("close", (path,))
    write = _Slot("write", (path, "%p", size), bytes_written=workload.transfer)
    read = _Slot("read", (path, "%p", size), bytes_read=workload.transfer)
    seek = _Slot("lseek", (path, str(3 * workload.transfer), "1"))
    per_file = workload.symbols // workload.most_files_of_a_rank() if workload.symbols else _SYMBOLS_PER_FILE
    opening, closing = [open_], [close]
    match workload.pattern:
        case "consecutive":
            units = [[write], [read]]
        case "strided":
            units = [[seek, write], [seek, read]]
        case "random":
            units = [[slot] for slot in _positioned(workload.transfer, max(1, per_file), depth=0)]
        case "mixed":
            opening = [_Slot("MPI_File_open", ("MPI_COMM_WORLD", path, "9", "%p", "{handle}"))]
            opening += [_Slot("open", (path, "66", "436"), depth=1), open_]
            closing += [_Slot("MPI_File_close", ("{handle}",)), _Slot("close", (path,), depth=1)]
            units = [[write], [read], [seek, write], [_Slot("fsync", (path,))]]
            units += [
                [_enclosing(slot), slot] for slot in _positioned(workload.transfer, per_file // 2, depth=1)
            ]
    room = workload.fewest_calls_of_a_file() - len(opening) - len(closing)
    fits = int(np.searchsorted(np.cumsum([len(unit) for unit in units]), room, side="right"))
    units = units[:fits]
    if not units:
        raise ValueError(
            f"{workload.fewest_calls_of_a_file()} calls per file and rank are too few for the pattern "
            f"{workload.pattern}; take more --calls or fewer --files or --ranks"
        )
    ids: dict[_Slot, int] = {}

    def numbered(slots: list[_Slot]) -> tuple[int, ...]:
        return tuple(ids.setdefault(slot, len(ids)) for slot in slots)

    sessions = numbered(opening), tuple(map(numbered, units)), numbered(closing)
    return _Shape(tuple(ids), *sessions, room=room, is_shuffled=workload.pattern in ("random", "mixed"))


def _positioned(size: int, count: int, *, depth: int) -> list[_Slot]:
    slots = []
    for i in range(count):
        args = ("{path}", "%p", str(size), str(i * size))
        if i % 2:
            slots.append(_Slot("pread", args, depth, bytes_read=size))
        else:
            slots.append(_Slot("pwrite", args, depth, bytes_written=size))
    return slots


def _enclosing(slot: _Slot) -> _Slot:
    _, pointer, size, offset = slot.args
    function = "MPI_File_read_at" if slot.bytes_read else "MPI_File_write_at"
    return _Slot(function, ("{handle}", offset, pointer, size, "MPI_BYTE", "MPI_STATUS_IGNORE"))


def count(text: str) -> int:
    """Read a count, also as `1e9`."""
    number = float(text)
    if not number.is_integer() or number < 0:
        raise argparse.ArgumentTypeError(f"not a count: {text}")
    return int(text) if text.isdigit() else int(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.traces.trace_generator", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="directory to write the trace into")
    calls = parser.add_mutually_exclusive_group(required=True)
    calls.add_argument("--calls", type=count, help="calls of all ranks together, e.g. 5e8")
    calls.add_argument("--grammar-calls", type=count, help="the same, with --no-times")
    parser.add_argument("--ranks", type=count, default=1)
    parser.add_argument("--files", type=count, default=1, help="files of all ranks together")
    parser.add_argument(
        "--pattern", choices=get_args(Pattern), help="default: mixed; random with --grammar-calls"
    )
    parser.add_argument("--layout", choices=get_args(GeneratedLayout), default="3.0")
    parser.add_argument("--calls-per-rule", type=count, default=100)
    parser.add_argument(
        "--symbols", type=count, default=0, help="distinct data calls of a rank; 0: 16 per file"
    )
    parser.add_argument("--transfer", type=count, default=65536, help="bytes per data call")
    parser.add_argument("--shared-grammar", action="store_true", help="all ranks make the same calls")
    parser.add_argument("--interprocess", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--no-times", action="store_true", help="write no time stamps")
    parser.add_argument("--zlib-level", type=int, default=6, help="6 is the tracer's; 1 is faster")
    parser.add_argument("--seed", type=count, default=0)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    is_grammar_only = given.grammar_calls is not None
    if min(given.ranks, given.files, given.calls_per_rule) < 1:
        parser.error("--ranks, --files and --calls-per-rule are at least 1")
    if given.shared_grammar and given.interprocess is False:
        parser.error("--shared-grammar needs inter-process compression")
    workload = Workload(
        calls=given.grammar_calls if is_grammar_only else given.calls,
        ranks=given.ranks,
        files=given.files,
        pattern=given.pattern or ("random" if is_grammar_only else "mixed"),
        layout=given.layout,
        calls_per_rule=given.calls_per_rule,
        symbols=given.symbols,
        transfer=given.transfer,
        shared_grammar=given.shared_grammar,
        interprocess=given.interprocess,
        times=not (given.no_times or is_grammar_only),
        zlib_level=given.zlib_level,
        seed=given.seed,
    )
    try:
        generated = generate_trace(given.out, workload)
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(asdict(generated), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
