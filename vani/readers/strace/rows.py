"""Conversion of strace's calls to rows of numbers: file, bytes, offset, effect on the file position.

Requests of io_submit (libaio), in logs that strace wrote with them (`-e abbrev=!io_submit`).
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import DIRECT, FAILED, LOCK, SYNCHRONOUS, Flag, Kind
from vani.columns import Bools, Columns, Int16s, Ints, Numbers, scalar, to_arrow, to_numpy
from vani.readers.functions import PositionRule
from vani.readers.scanned import row_schema
from vani.readers.signatures import NO_VALUE, by_text
from vani.readers.strace.lines import Calls, Spellings, integers, named_first
from vani.readers.strace.processes import Folders, Processes
from vani.readers.strace.system_calls import CALLS, FUNCTIONS, LOCKS, SUBMITTED, Names, Offset

_BEGIN = "{aio_data="
_REQUEST = (
    r"^[^,]*(?:, aio_key=[^,]*)?, aio_lio_opcode=IOCB_CMD_(?P<opcode>[A-Z]+),.*?"
    r"aio_fildes=\d+<(?P<path>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?"
    r"(?:, aio_buf=(?P<buffer>\[.*?\]|[^,}]*)(?:, aio_nbytes=(?P<n>\d{1,18}))?(?:, aio_offset=(?P<at>-?\d{1,18}))?)?"
    r"(?:, aio_resfd=[^}]*)?\}.*$"
)
_LENGTH = re.compile(r"iov_len=(\d{1,18})")
_CODE = {name: code for code, name in enumerate(FUNCTIONS)}


def are_shown(calls: Calls, rows: Ints) -> Bools:
    """Return whether the log contains the requests of these io_submit calls."""
    return to_numpy(pc.match_substring(calls.args.take(to_arrow(rows)), "aio_lio_opcode=IOCB_CMD_"))


def requests_of(calls: Calls, thread: Ints, spellings: Spellings) -> Columns | None:
    """Columns (`rows.ROWS`) of the requests that a block's calls submitted; None if there are none.

    A request has its requested size, and an equal share of its call's time.
    """
    at = np.flatnonzero(calls.of("io_submit") & (calls.value > 0))
    if not len(at):
        return None
    at = at[are_shown(calls, at)]
    pieces = pc.split_pattern(calls.args.take(to_arrow(at)), _BEGIN)
    call = to_numpy(pc.list_parent_indices(pieces)).astype(np.int64)
    texts = pc.list_flatten(pieces)
    first = np.searchsorted(call, np.arange(len(at)))
    # The other arguments precede the first request.
    number: Ints = np.arange(len(call)) - first[call] - 1
    accepted = np.flatnonzero((number >= 0) & (number < calls.value[at][call]))
    fields = pc.extract_regex(texts.take(to_arrow(accepted)), _REQUEST)
    opcode = pc.struct_field(fields, "opcode")
    known = np.flatnonzero(to_numpy(pc.fill_null(pc.is_in(opcode, pa.array(list(SUBMITTED))), False)))
    if not len(known):
        return None
    fields, call, number = fields.take(to_arrow(known)), call[accepted[known]], number[accepted[known]]
    functions = [SUBMITTED[name] for name in pc.struct_field(fields, "opcode").to_pylist()]
    size = integers(pc.struct_field(fields, "n"), NO_VALUE)
    for request in np.flatnonzero(size == NO_VALUE).tolist():
        lengths = _LENGTH.findall(str(pc.struct_field(fields, "buffer")[request].as_py()))
        size[request] = sum(map(int, lengths)) if lengths else NO_VALUE
    moves = np.array([not name.endswith(":sync") for name in functions], np.bool_)
    size[~moves | (size == 0)] = NO_VALUE
    offset = integers(pc.struct_field(fields, "at"), NO_VALUE)
    offset[~moves | (offset < 0)] = NO_VALUE
    row = at[call]
    took = np.maximum(calls.took[row], 0) // calls.value[row]
    path = pc.struct_field(fields, "path")
    n = len(row)
    return {
        "thread": thread[row],
        "pid": calls.pid[row],
        "func": np.array([_CODE[name] for name in functions]),
        "flags": np.zeros(n, np.int16),
        "rule": np.where(size != NO_VALUE, PositionRule.AT, PositionRule.NONE),
        "there": np.ones(n, np.bool_),
        "standard": np.zeros(n, np.bool_),
        "file": spellings.codes(path, pa.array([""] * n)),
        "rename_to": np.full(n, -1, np.int32),
        "bytes": size,
        "value": offset,
        "start": calls.start[row] + number * took,
        "took": took,
    }


ROWS = row_schema("thread pid func flags rule there standard file rename_to bytes value start took")
"""`there`: the call shows that its file exists; `standard`: it uses standard input, output or error; the
other columns are those of `vani.readers.signatures.Signatures`."""

_TABLE = {
    field: np.array([getattr(call, field) for call in CALLS.values()])
    for field in ("kind", "rule", "flags", "names", "offset", "opens", "renames", "asks")
}
"""Facts about system calls, by position in `CALLS`."""
_LAST = r", (?P<n>-?\d{1,19})$"
_BEFORE_FLAGS = r", (?P<n>-?\d{1,19}), [^,]*$"
_MAPPED = r", \d+<(?P<dir>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?, [^,]*$"
_SECOND_NAME = (
    r'^(?:[^"]*)"(?:[^"\\]|\\.)*", (?:(?:AT_FDCWD|-?\d+)(?:<(?P<dir>[^<>]*)>)?, )?"(?P<name>(?:[^"\\]|\\.)*)"'
)
_OPEN_FLAGS = r'^[^"]*"(?:[^"\\]|\\.)*", (?:\{flags=)?(?P<flags>[A-Z0-9_|x]+)'
_SECOND_DESCRIPTOR = (
    r"^\d+<[^<>]*>(?:\(deleted\))?, (?:(?P<one>NULL|\[[^\]]*\](?: => \[[^\]]*\])?), )?"
    r"\d+<(?P<dir>[^<>]*)>(?:\(deleted\))?(?:, (?P<two>[^,]*))?"
)
_LOCKS = r"^[^<]*(?:<[^<>]*>)?[^,]*, F_(?:OFD_)?(?:SETLK|SETLKW|GETLK)(?:64)?\b"
_MISSING = pa.array(["ENOENT", "ENOTDIR"])
_OPEN_BITS: dict[str, int] = {
    "O_CREAT": Flag.CREATE,
    "O_TRUNC": Flag.TRUNCATE,
    "O_APPEND": Flag.APPEND,
    "O_WRONLY": Flag.WRITABLE,
    "O_RDWR": Flag.WRITABLE,
    "O_DIRECTORY": Flag.DIRECTORY,
    # Opened as a location (O_PATH), not for reading.
    "O_PATH": Flag.DIRECTORY,
    "O_DIRECT": DIRECT,
    "O_SYNC": SYNCHRONOUS,
    "O_DSYNC": SYNCHRONOUS,
}


class Descriptors:
    """Descriptors whose writes wait for the storage. Forked processes inherit them; duplicates are not followed."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._waits: dict[tuple[int, int], bool] = {}
        """By first thread of the process and number of the descriptor, from the first such open on."""

    def mark(self, flags: Int16s, writes: Bools, args: pa.Array, value: Ints, thread: Ints) -> None:
        """Set `SYNCHRONOUS` on the writes of a block through these descriptors; columns of shape (calls,)."""
        opens = (flags & Flag.OPEN) != 0
        if not self._waits and not (flags[opens] & SYNCHRONOUS).any():
            return
        rows = np.flatnonzero(opens | writes)
        used = _numbers(_part(args, rows, r"^(?P<n>\d+)<", "n")).tolist()
        first, parents = self._processes.leaders().tolist(), self._processes.parents
        columns = (rows, opens[rows], flags[rows] & SYNCHRONOUS, value[rows], thread[rows])
        for row, is_open, waits, number, process, other in zip(*(c.tolist() for c in columns), used, strict=True):
            at = first[process]
            if is_open:
                self._waits[at, number] = bool(waits)
                continue
            while (at, other) not in self._waits and parents[at] >= 0:
                at = first[parents[at]]
            if self._waits.get((at, other)):
                flags[row] |= SYNCHRONOUS


def rows_of(
    calls: Calls,
    thread: Ints,
    folders: Folders,
    spellings: Spellings,
    descriptors: Descriptors,
    synced: dict[int, int],
) -> Columns:
    """The rows (`ROWS`) of a block's calls that work on files, by start time; `synced` are files of msync by call."""
    rows = _Rows(calls, thread)
    rows.find_files(calls.real.take(to_arrow(rows.at)), folders, spellings)
    rows.columns["file"][np.searchsorted(rows.at, list(synced))] = list(synced.values())
    rows.find_offsets()
    rows.find_flags(calls.error.take(to_arrow(rows.at)))
    moves, writes = rows.moves, rows.fact("kind") == Kind.WRITE
    descriptors.mark(rows.columns["flags"], moves & writes, rows.args, rows.value, rows.columns["thread"])
    second = rows.find_second_files(spellings)
    columns = rows.columns if second is None else _with_reads(rows.columns, *second)
    requests = requests_of(calls, thread, spellings)
    if requests is not None:
        columns = {name: np.concatenate((values, requests[name])) for name, values in columns.items()}
    return columns


def _on_files(calls: Calls) -> Ints:
    """Index of each call's name in `CALLS`, -1 for calls that do not count."""
    codes = by_text(calls.name, lambda name: _CODE[name] if name in CALLS else -1).astype(np.int64)
    codes[calls.value == NO_VALUE] = -1
    for name, pattern in (("fcntl", _LOCKS), ("mmap", _MAPPED), ("mmap2", _MAPPED)):
        at = np.flatnonzero(codes == _CODE[name])
        # Excludes memory without a file, and calls that only change a descriptor.
        counts = to_numpy(pc.match_substring_regex(calls.args.take(to_arrow(at)), pattern))
        codes[at[~counts]] = -1
    submits = np.flatnonzero(codes == _CODE["io_submit"])
    if len(submits):
        codes[submits[are_shown(calls, submits)]] = -1
    return codes


def refused_locks(calls: Calls) -> list[tuple[str, str]]:
    """The function and the error of each call that did not get a lock."""
    at = np.flatnonzero(calls.of(*LOCKS) & (calls.value < 0) & (calls.value != NO_VALUE))
    columns = (column.take(to_arrow(at)).to_pylist() for column in (calls.name, calls.args, calls.error))
    rows = zip(*columns, strict=True)
    return [(name, error) for name, args, error in rows if name != "fcntl" or re.match(_LOCKS, args)]


class _Rows:
    """A block's calls that work on files, and their columns (`ROWS`) while these are being filled."""

    def __init__(self, calls: Calls, thread: Ints) -> None:
        selected = _on_files(calls)
        self.at = np.flatnonzero(selected >= 0)
        self._name = selected[self.at]
        """Position of each call's name in `CALLS`."""
        self.args, self.value = calls.args.take(to_arrow(self.at)), calls.value[self.at]
        self._ok = self.value >= 0
        kind, n = self.fact("kind"), len(self.at)
        self.moves = (kind == Kind.READ) | (kind == Kind.WRITE)
        # A read at the end of a file does not show how large requests are, so it has no size.
        some = self.moves & (self.value > 0)
        rule = np.where(self._ok, self.fact("rule"), 0).astype(np.int8)
        rule[self.moves & ~some] = PositionRule.NONE
        self.columns: Columns = {
            "thread": thread[self.at],
            "pid": calls.pid[self.at],
            "func": self._name,
            "flags": np.where(self._ok, self.fact("flags"), 0).astype(np.int16),
            "rule": rule,
            "there": self._ok,
            "standard": to_numpy(pc.match_substring_regex(self.args, "^[012]<")),
            "file": np.full(n, -1, np.int32),
            "rename_to": np.full(n, -1, np.int32),
            "bytes": np.where(some, self.value, NO_VALUE),
            "value": np.full(n, NO_VALUE),
            "start": calls.start[self.at],
            "took": np.maximum(calls.took[self.at], 0),
        }

    def fact(self, name: str) -> Numbers:
        """A fact about the system call of each row."""
        return _TABLE[name][self._name]

    def find_files(self, real: pa.Array, folders: Folders, spellings: Spellings) -> None:
        """Fill `file` and `rename_to`; `real` are the paths of returned descriptors."""
        folder, spelled = named_first(self.args)
        names, thread, empty = self.fact("names"), self.columns["thread"], scalar("")
        by_path, mapped = names == Names.PATH, names == Names.MAPPED
        # The quoted text after a descriptor is data.
        spelled = pc.if_else(pa.array(by_path), spelled, empty)
        if len(self.at):
            at = np.flatnonzero(mapped)
            folder = pc.replace_with_mask(folder, pa.array(mapped), _part(self.args, at, _MAPPED, "dir"))
            folder = pc.if_else(pa.array(names == Names.NONE), empty, folder)
        absolute = pc.or_(pc.equal(spelled, empty), pc.starts_with(spelled, "/"))
        free = by_path & to_numpy(pc.and_(pc.equal(folder, empty), pc.invert(absolute)))
        at = np.flatnonzero(free)
        if len(at):
            folder = pc.replace_with_mask(folder, pa.array(free), folders.of(thread[at], self.at[at]))
        # The returned descriptor has the name that later calls use, with links resolved.
        opened = pa.array(by_path & self._ok & self.fact("opens") & to_numpy(pc.is_valid(real)))
        folder, spelled = pc.if_else(opened, real, folder), pc.if_else(opened, empty, spelled)
        self.columns["file"] = spellings.codes(folder, spelled)
        renames = np.flatnonzero(self.fact("renames") & self._ok)
        if len(renames):
            where, new = (pc.fill_null(_part(self.args, renames, _SECOND_NAME, part), "") for part in ("dir", "name"))
            cwd = folders.of(thread[renames], self.at[renames])
            begins = pc.or_(pc.starts_with(new, "/"), pc.not_equal(where, empty))
            self.columns["rename_to"][renames] = spellings.codes(pc.if_else(begins, where, cwd), new)

    def find_offsets(self) -> None:
        """Fill `value`."""
        where, offset = self.fact("offset"), self.columns["value"]
        for kind, pattern in ((Offset.LAST, _LAST), (Offset.BEFORE_FLAGS, _BEFORE_FLAGS)):
            rows = np.flatnonzero((where == kind) & self._ok)
            if len(rows):
                offset[rows] = _numbers(_part(self.args, rows, pattern, "n"))
        at_position = (where == Offset.BEFORE_FLAGS) & (offset == -1)
        self.columns["rule"][at_position], offset[at_position] = PositionRule.ADVANCE, NO_VALUE
        returned = (where == Offset.RETURNED) & self._ok
        offset[returned] = self.value[returned]
        offset[offset < 0] = NO_VALUE

    def find_flags(self, error: pa.Array) -> None:
        """Add what the arguments and errors show to `flags`."""
        flags, opens = self.columns["flags"], self.fact("opens")
        rows = np.flatnonzero(opens)
        if len(rows):
            flags[rows] |= by_text(_part(self.args, rows, _OPEN_FLAGS, "flags"), _open_flags, 0).astype(np.int16)
            flags[rows[~self._ok[rows]]] &= int(Flag.DIRECTORY)
        asks = np.flatnonzero((flags & Flag.STAT) != 0)
        if len(asks):
            args = self.args.take(to_arrow(asks))
            folders = to_numpy(pc.match_substring_regex(args, r"stx?_mode=S_IFDIR\|"))
            flags[asks[folders]] |= int(Flag.DIRECTORY)
        looks = opens | self.fact("asks")
        flags[looks & to_numpy(pc.is_in(error, _MISSING))] |= int(FAILED)
        flags[~self._ok & ((self.fact("flags") & int(LOCK)) != 0) & ~looks] |= int(LOCK | FAILED)

    def find_second_files(self, spellings: Spellings) -> tuple[Ints, Columns] | None:
        """Calls with two files: they get the written file, and the columns of the read file are returned."""
        rows = np.flatnonzero(self.fact("names") == Names.TWO)
        if not len(rows):
            return None
        columns, name = self.columns, self._name[rows]
        parts = [pc.fill_null(_part(self.args, rows, _SECOND_DESCRIPTOR, part), "") for part in ("dir", "one", "two")]
        second = spellings.codes(parts[0], pa.array([""] * len(rows), pa.string()))
        first = columns["file"][rows].copy()
        sends = np.array([n.startswith("sendfile") for n in CALLS], np.bool_)[name]
        # sendfile(out, in, offset, n); the others (in, offset, out, offset, n).
        offsets = [_numbers(pc.struct_field(pc.extract_regex(part, r"^\[(?P<n>\d{1,18})"), "n")) for part in parts[1:]]
        out, source = np.where(sends, first, second), np.where(sends, second, first)
        out_at = np.where(sends, NO_VALUE, offsets[1])
        in_at = np.where(sends, offsets[1], offsets[0])
        columns["file"][rows], columns["value"][rows] = out, out_at
        advance, at, none = (int(rule) for rule in (PositionRule.ADVANCE, PositionRule.AT, PositionRule.NONE))
        moved = self._ok[rows] & (columns["bytes"][rows] != NO_VALUE)
        columns["rule"][rows] = np.where(moved, np.where(out_at == NO_VALUE, advance, at), none)
        return rows, {
            "func": np.array([_CODE.get(f"{n}:read", -1) for n in CALLS])[name],
            "file": source,
            "value": in_at,
            "rule": np.where(moved, np.where(in_at == NO_VALUE, advance, at), none),
        }


def _open_flags(text: str) -> int:
    # As numbers: an enumeration would drop the sign.
    return int(np.bitwise_or.reduce([int(_OPEN_BITS.get(bit, 0)) for bit in text.split("|")]))


def _part(args: pa.Array, rows: Ints, pattern: str, name: str) -> pa.Array:
    """The part of this name that a pattern finds in the arguments of some calls."""
    return pc.struct_field(pc.extract_regex(args.take(to_arrow(rows)), pattern), name)


def _numbers(column: pa.Array) -> Ints:
    # More than 18 digits may exceed 64 bits, and no file is as large.
    column = pc.replace_substring_regex(column, r"^-?\d{19,}$", str((1 << 63) - 1))
    good = pc.match_substring_regex(column, r"^-?\d{1,19}$")
    return to_numpy(pc.cast(pc.if_else(good, column, pa.scalar(None, column.type)), pa.int64()), NO_VALUE).copy()


def _with_reads(columns: Columns, rows: Ints, other: Columns) -> Columns:
    """Insert the read of a call with two files before its write; each gets half of the time."""
    took, start = columns["took"].copy(), columns["start"].copy()
    half = took[rows] // 2
    reads = {key: values[rows] for key, values in columns.items()} | other | {"took": half}
    took[rows] -= half
    start[rows] += half
    columns = columns | {"took": took, "start": start}
    return {key: np.insert(values, rows, reads[key]) for key, values in columns.items()}
