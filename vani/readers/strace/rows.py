"""Conversion of strace's calls to rows of numbers: file, bytes, offset, effect on the file position.

Requests of io_submit (libaio), in logs that strace wrote with them (`-e abbrev=!io_submit`).
"""

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import DIRECT, FAILED, LOCK, SYNCHRONOUS, Flag, Kind
from vani.columns import Bools, Ints, scalar, to_arrow, to_numpy
from vani.readers.functions import PositionRule
from vani.readers.scanned import batch_of
from vani.readers.signatures import NO_VALUE
from vani.readers.strace.lines import Calls, Spellings, named_first
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


def requests_of(calls: Calls, thread: Ints, spellings: Spellings) -> dict[str, NDArray[np.generic]] | None:
    """Columns (`rows.ROWS`) of the requests that a block's calls submitted; None if there are none.

    A request has its requested size, and an equal share of its call's time.
    """
    names = calls.name.dictionary.to_pylist()
    if "io_submit" not in names:
        return None
    at = np.flatnonzero((to_numpy(calls.name.indices) == names.index("io_submit")) & (calls.value > 0))
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
    size = _request_numbers(fields, "n")
    for request in np.flatnonzero(size == NO_VALUE).tolist():
        lengths = _LENGTH.findall(str(pc.struct_field(fields, "buffer")[request].as_py()))
        size[request] = sum(map(int, lengths)) if lengths else NO_VALUE
    moves = np.array([not name.endswith(":sync") for name in functions], np.bool_)
    size[~moves | (size == 0)] = NO_VALUE
    offset = _request_numbers(fields, "at")
    offset[~moves | (offset < 0)] = NO_VALUE
    row = at[call]
    took = np.maximum(calls.took[row], 0) // calls.value[row]
    path = pc.struct_field(fields, "path")
    n = len(row)
    return {
        "thread": thread[row].astype(np.int32),
        "pid": calls.pid[row].astype(np.int32),
        "func": np.array([_CODE[name] for name in functions], np.int16),
        "flags": np.zeros(n, np.int16),
        "rule": np.where(size != NO_VALUE, PositionRule.AT, PositionRule.NONE).astype(np.int8),
        "there": np.ones(n, np.bool_),
        "standard": np.zeros(n, np.bool_),
        "file": spellings.codes(path, pa.array([""] * n)),
        "rename_to": np.full(n, -1, np.int32),
        "bytes": size,
        "value": offset,
        "start": calls.start[row] + number * took,
        "took": took,
    }


def _request_numbers(fields: pa.StructArray, name: str) -> Ints:
    column = pc.struct_field(fields, name)
    digits = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return to_numpy(pc.cast(digits, pa.int64()), NO_VALUE).astype(np.int64)


ROWS = pa.schema(
    [
        ("thread", pa.int32()),
        ("pid", pa.int32()),
        ("func", pa.int16()),
        ("flags", pa.int16()),
        ("rule", pa.int8()),
        ("there", pa.bool_()),
        ("standard", pa.bool_()),
        ("file", pa.int32()),
        ("rename_to", pa.int32()),
        ("bytes", pa.int64()),
        ("value", pa.int64()),
        ("start", pa.int64()),
        ("took", pa.int64()),
    ]
)
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


@dataclass
class _Columns:
    """The columns of some calls, shape (n,) each, while they are being filled."""

    func: NDArray[np.int16]
    flags: NDArray[np.int16]
    rule: NDArray[np.int8]
    there: Bools
    file: NDArray[np.int32]
    rename_to: NDArray[np.int32]
    bytes: Ints
    value: Ints


class Descriptors:
    """Descriptors whose writes wait for the storage. Forked processes inherit them; duplicates are not followed."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._waits: dict[tuple[int, int], bool] = {}
        """By first thread of the process and number of the descriptor, from the first such open on."""

    def mark(self, flags: NDArray[np.int16], writes: Bools, args: pa.Array, value: Ints, thread: Ints) -> None:
        """Set `SYNCHRONOUS` on the writes of a block through these descriptors; columns of shape (calls,)."""
        opens = (flags & Flag.OPEN) != 0
        if not self._waits and not (flags[opens] & SYNCHRONOUS).any():
            return
        rows = np.flatnonzero(opens | writes)
        used = _numbers(args.take(to_arrow(rows)), r"^(?P<n>\d+)<", "n").tolist()
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
    calls: Calls, thread: Ints, folders: Folders, spellings: Spellings, descriptors: Descriptors
) -> pa.RecordBatch:
    """The rows (`ROWS`) of a block's calls that work on files, by start time."""
    selected = _on_files(calls)
    order, name = np.flatnonzero(selected >= 0), selected[selected >= 0]
    args = calls.args.take(to_arrow(order))
    value = calls.value[order]
    ok = value >= 0
    columns = _Columns(
        func=name.astype(np.int16),
        flags=np.where(ok, _TABLE["flags"][name], 0).astype(np.int16),
        rule=np.where(ok, _TABLE["rule"][name], 0).astype(np.int8),
        there=ok.copy(),
        file=np.full(len(name), -1, np.int32),
        rename_to=np.full(len(name), -1, np.int32),
        bytes=np.full(len(name), NO_VALUE),
        value=np.full(len(name), NO_VALUE),
    )
    kind = _TABLE["kind"][name]
    moves = (kind == Kind.READ) | (kind == Kind.WRITE)
    # A read at the end of a file does not show how large requests are, so it has no size.
    some = moves & (value > 0)
    columns.bytes[some] = value[some]
    columns.rule[moves & ~some] = PositionRule.NONE
    _files(columns, name, args, calls.real.take(to_arrow(order)), ok, thread[order], order, folders, spellings)
    _offsets(columns, name, args, value, ok)
    _opens(columns, name, args, ok)
    looks = _TABLE["opens"][name] | _TABLE["asks"][name]
    missing = looks & to_numpy(pc.is_in(calls.error.take(to_arrow(order)), _MISSING))
    columns.flags[missing] |= int(FAILED)
    columns.flags[~ok & ((_TABLE["flags"][name] & int(LOCK)) != 0) & ~looks] |= int(LOCK | FAILED)
    descriptors.mark(columns.flags, moves & (kind == Kind.WRITE), args, value, thread[order])
    second = _second_files(columns, name, args, ok, spellings)
    took = np.maximum(calls.took[order], 0)
    batch = {
        "thread": thread[order].astype(np.int32),
        "pid": calls.pid[order].astype(np.int32),
        "start": calls.start[order],
        "took": took,
        "standard": to_numpy(pc.match_substring_regex(args, "^[012]<")),
        **vars(columns),
    }
    if second is not None:
        batch = _with_reads(batch, *second)
    requests = requests_of(calls, thread, spellings)
    if requests is not None:
        batch = {name: np.concatenate((values, requests[name])) for name, values in batch.items()}
    return batch_of(batch, ROWS)


def _on_files(calls: Calls) -> Ints:
    """Index of each call's name in `CALLS`, -1 for calls that do not count."""
    names = calls.name.dictionary.to_pylist()
    lookup = np.array([_CODE[n] if n in CALLS else -1 for n in names] or [-1], np.int64)
    codes = lookup[to_numpy(calls.name.indices)] if len(calls.row) else np.zeros(0, np.int64)
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
    names = calls.name.dictionary.to_pylist()
    locks = np.array([name in LOCKS for name in names] or [False])[to_numpy(calls.name.indices)]
    at = np.flatnonzero(locks & (calls.value < 0) & (calls.value != NO_VALUE))
    columns = (column.take(to_arrow(at)).to_pylist() for column in (calls.name, calls.args, calls.error))
    rows = zip(*columns, strict=True)
    return [(name, error) for name, args, error in rows if name != "fcntl" or re.match(_LOCKS, args)]


def _of(name: Ints, *names: Names) -> Bools:
    return np.isin(_TABLE["names"], list(names))[name]


def _files(
    columns: _Columns,
    name: Ints,
    args: pa.Array,
    real: pa.Array,
    ok: Bools,
    thread: Ints,
    order: Ints,
    folders: Folders,
    spellings: Spellings,
) -> None:
    folder, spelled = named_first(args)
    by_path = _of(name, Names.PATH)
    empty = scalar("")
    # The quoted text after a descriptor is data.
    spelled = pc.if_else(pa.array(by_path), spelled, empty)
    if len(name):
        rows = np.flatnonzero(_of(name, Names.MAPPED))
        mapped = pc.struct_field(pc.extract_regex(args.take(to_arrow(rows)), _MAPPED), "dir")
        folder = pc.replace_with_mask(folder, pa.array(_of(name, Names.MAPPED)), mapped)
        folder = pc.if_else(pa.array(_of(name, Names.NONE)), empty, folder)
    free = by_path & to_numpy(
        pc.and_(
            pc.equal(folder, empty), pc.invert(pc.or_(pc.equal(spelled, empty), pc.starts_with(spelled, "/")))
        )
    )
    rows = np.flatnonzero(free)
    if len(rows):
        folder = pc.replace_with_mask(folder, pa.array(free), folders.of(thread[rows], order[rows]))
    # The returned descriptor has the name that later calls use, with links resolved.
    opened = by_path & ok & _TABLE["opens"][name] & to_numpy(pc.is_valid(real))
    folder = pc.if_else(pa.array(opened), real, folder)
    spelled = pc.if_else(pa.array(opened), empty, spelled)
    columns.file[:] = spellings.codes(folder, spelled)
    renames = np.flatnonzero(_TABLE["renames"][name] & ok)
    if len(renames):
        both = pc.extract_regex(args.take(to_arrow(renames)), _SECOND_NAME)
        where, new = (pc.fill_null(pc.struct_field(both, part), "") for part in ("dir", "name"))
        cwd = folders.of(thread[renames], order[renames])
        begins = pc.or_(pc.starts_with(new, "/"), pc.not_equal(where, empty))
        columns.rename_to[renames] = spellings.codes(pc.if_else(begins, where, cwd), new)


def _offsets(columns: _Columns, name: Ints, args: pa.Array, value: Ints, ok: Bools) -> None:
    where = _TABLE["offset"][name]
    for kind, pattern in ((Offset.LAST, _LAST), (Offset.BEFORE_FLAGS, _BEFORE_FLAGS)):
        rows = np.flatnonzero((where == kind) & ok)
        if len(rows):
            columns.value[rows] = _numbers(args.take(to_arrow(rows)), pattern, "n")
    at_position = (where == Offset.BEFORE_FLAGS) & (columns.value == -1)
    columns.rule[at_position], columns.value[at_position] = PositionRule.ADVANCE, NO_VALUE
    returned = (where == Offset.RETURNED) & ok
    columns.value[returned] = value[returned]
    columns.value[columns.value < 0] = NO_VALUE


def _opens(columns: _Columns, name: Ints, args: pa.Array, ok: Bools) -> None:
    rows = np.flatnonzero(_TABLE["opens"][name])
    if len(rows):
        bits = pc.dictionary_encode(pc.struct_field(pc.extract_regex(args.take(to_arrow(rows)), _OPEN_FLAGS), "flags"))
        lookup = np.array([_open_flags(text or "") for text in bits.dictionary.to_pylist()] + [0], np.int16)
        codes = np.where(to_numpy(pc.is_valid(bits)), to_numpy(pc.fill_null(bits.indices, 0)), len(lookup) - 1)
        columns.flags[rows] |= lookup[codes]
        failed = rows[~ok[rows]]
        columns.flags[failed] &= int(Flag.DIRECTORY)
    asks = np.flatnonzero((columns.flags & Flag.STAT) != 0)
    if len(asks):
        folders = to_numpy(pc.match_substring(args.take(to_arrow(asks)), "st_mode=S_IFDIR|"))
        folders |= to_numpy(pc.match_substring(args.take(to_arrow(asks)), "stx_mode=S_IFDIR|"))
        columns.flags[asks[folders]] |= int(Flag.DIRECTORY)


def _open_flags(text: str) -> int:
    # As numbers: an enumeration would drop the sign.
    return reduce(or_, (int(_OPEN_BITS.get(bit, 0)) for bit in text.split("|")))


def _numbers(args: pa.Array, pattern: str, part: str) -> Ints:
    column = pc.struct_field(pc.extract_regex(args, pattern), part)
    # More than 18 digits may exceed 64 bits, and no file is as large.
    column = pc.replace_substring_regex(column, r"^-?\d{19,}$", str((1 << 63) - 1))
    good = pc.match_substring_regex(column, r"^-?\d{1,19}$")
    return to_numpy(pc.cast(pc.if_else(good, column, pa.scalar(None, column.type)), pa.int64()), NO_VALUE).copy()


def _second_files(
    columns: _Columns, name: Ints, args: pa.Array, ok: Bools, spellings: Spellings
) -> tuple[Ints, dict[str, NDArray[np.generic]]] | None:
    """Calls with two files: `columns` gets the written file, and the columns of the read file are returned."""
    rows = np.flatnonzero(_of(name, Names.TWO))
    if not len(rows):
        return None
    text = args.take(to_arrow(rows))
    both = pc.extract_regex(text, _SECOND_DESCRIPTOR)
    second = spellings.codes(pc.fill_null(pc.struct_field(both, "dir"), ""), pa.array([""] * len(rows), pa.string()))
    first = columns.file[rows].copy()
    sends = np.array([n.startswith("sendfile") for n in CALLS], np.bool_)[name[rows]]
    # sendfile(out, in, offset, n); the others (in, offset, out, offset, n).
    offsets = [
        _numbers(pc.fill_null(pc.struct_field(both, part), ""), r"^\[(?P<n>\d{1,18})", "n")
        for part in ("one", "two")
    ]
    out, source = np.where(sends, first, second), np.where(sends, second, first)
    out_at = np.where(sends, NO_VALUE, offsets[1])
    in_at = np.where(sends, offsets[1], offsets[0])
    columns.file[rows], columns.value[rows] = out, out_at
    advance, at, none = (int(rule) for rule in (PositionRule.ADVANCE, PositionRule.AT, PositionRule.NONE))
    moved = ok[rows] & (columns.bytes[rows] != NO_VALUE)
    columns.rule[rows] = np.where(moved, np.where(out_at == NO_VALUE, advance, at), none)
    reads = np.array([_CODE.get(f"{n}:read", -1) for n in CALLS])[name[rows]]
    return rows, {
        "func": reads.astype(np.int16),
        "file": source.astype(np.int32),
        "value": in_at,
        "rule": np.where(moved, np.where(in_at == NO_VALUE, advance, at), none).astype(np.int8),
    }


def _with_reads(
    batch: dict[str, NDArray[np.generic]], rows: Ints, other: dict[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """Insert the read of a call with two files before its write; each gets half of the time."""
    took, start = np.asarray(batch["took"], np.int64), np.asarray(batch["start"], np.int64)
    half = took[rows] // 2
    reads = {key: values[rows] for key, values in batch.items()} | other | {"took": half}
    took[rows] -= half
    start = start.copy()
    start[rows] += half
    batch = batch | {"took": took, "start": start}
    return {key: np.insert(values, rows, reads[key]) for key, values in batch.items()}
