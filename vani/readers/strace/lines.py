"""strace output lines as columns (thread, call, start, result and duration), and the file names in them.

A line is `PID TIME name(arguments) = value <seconds>`. If lines of several threads interleave, a call is split in two:
its beginning (`name(... <unfinished ...>`), and the rest (`<... name resumed>...`). In file names, strace escapes `<`,
`>`, `"` and all unprintable bytes, so no name can look like the end of a line.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.columns import Bools, Int32s, Ints, scalar, to_arrow, to_numpy
from vani.errors import TraceError
from vani.readers.files import readable
from vani.readers.paths import PathTable
from vani.readers.signatures import NO_VALUE, by_text

_BLOCK = 1 << 23
"""Bytes that are parsed at a time; parsing takes about ten times as much memory."""
_LONGEST = 1 << 26
"""Longest possible strace line in bytes, because arguments are abbreviated."""

# Times after 2128 are damage: nanoseconds since 1970 exceed 64 bits in 2262.
_HEAD = (
    r"^(?:(?:\[pid +)?(?P<pid>\d{1,9})\]? +)?(?P<s>[0-4]?\d{9})\.(?P<f>\d{6,9}) "
    r"(?P<mark><\.\.\. |--- |\+\+\+ )?(?P<name>\w+)"
)
_CALL = (
    r"^[^(]*\((?P<args>.*)\) += (?P<ret>-?\d{1,19}|0x[0-9a-f]{1,16}|\?)"
    r"(?:<(?P<real>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?)?"
    r"(?: (?P<error>E[A-Z0-9_]+) \([^()]*\)| \([^\n]*\))?(?: <(?P<s>\d{1,9})\.(?P<f>\d{6,9})>)?\n?$"
)
_ENDS = ("exited", "killed", "superseded")
_UNFINISHED = "<unfinished ...>\n"
_RESUMED = r" resumed> ?"


@dataclass(frozen=True)
class Calls:
    """Calls that returned, by start time; shape (n,) each."""

    row: Ints
    """Line number in its block at which the call began."""
    pid: Ints
    """Id of the thread."""
    name: pa.DictionaryArray
    args: pa.Array
    value: Ints
    """Result, with addresses as numbers; `NO_VALUE` if a call was interrupted and restarted."""
    real: pa.Array
    """Path of the returned descriptor; null if there is none."""
    error: pa.Array
    """Name of the error of a failed call, such as ENOENT; else empty."""
    start: Ints
    """Nanoseconds since 1970."""
    took: Ints
    """Nanoseconds; -1 if the log does not have it."""

    def of(self, *names: str) -> Bools:
        """Whether each call is one of these system calls."""
        return _among(self.name, names)


@dataclass(frozen=True)
class Block:
    """Some lines of a log."""

    calls: Calls
    exits: list[tuple[int, int]]
    """Line and id of each thread that ended."""
    pids: Ints
    """Thread of each line, shape (lines,)."""


@dataclass
class LineReader:
    """Reads one log's lines about selected system calls, some MiB at a time."""

    path: Path
    wanted: frozenset[str]
    """Names of system calls."""
    pid: int = 0
    """Thread of lines that do not name one."""
    strange: int = 0
    """Number of lines that strace did not write."""
    cut: bool = False
    """Whether the last line is incomplete."""
    untimed: int = 0
    """Number of lines without a time stamp."""
    first_ns: int | None = None
    _begun: dict[int, bytes] = field(default_factory=dict)
    """The beginning of a call that has not returned, by thread."""

    def blocks(self) -> Iterator[Block]:
        """Yield the log's blocks in order.

        Raises
        ------
        TraceError
            The file cannot be read, or has no lines.
        """
        with readable(self.path), self.path.open("rb") as file:
            rest = b""
            while data := file.read(_BLOCK):
                data = rest + data
                end = data.rfind(b"\n") + 1
                rest = data[end:]
                if len(rest) > _LONGEST:
                    raise TraceError("is not text: a line is longer than 64 MiB", where=self.path)
                if end:
                    yield self._block(data[:end])
            self.cut = bool(rest)

    def _block(self, data: bytes) -> Block:
        begun = b"".join(self._begun.values())
        lines = _lines(begun + data)
        head = pc.extract_regex(lines, _HEAD)
        seen = to_numpy(pc.is_valid(head))
        if not seen.all():
            lost = np.flatnonzero(~seen)
            short = lines.take(to_arrow(lost))
            # Also lines of a call's stack (strace -k).
            blank = to_numpy(pc.match_substring_regex(short, r"^\s*$|^ > "))
            plain = to_numpy(
                pc.match_substring_regex(
                    short, r"^(?:\[?(?:pid +)?\d{1,9}\]? +)?(?:\d\d:\d\d:\d\d\S* )?[a-z_]\w*\("
                )
            )
            self.untimed += int(plain.sum())
            self.strange += int((~plain & ~blank).sum())
            keep = to_arrow(np.flatnonzero(seen))
            lines, head = lines.take(keep), head.take(keep)
        start = _nanoseconds(pc.struct_field(head, "s"), pc.struct_field(head, "f"))
        pid = integers(pc.struct_field(head, "pid"), self.pid)
        if len(start):
            low = int(start.min())
            self.first_ns = low if self.first_ns is None else min(self.first_ns, low)
        name, mark = (pc.dictionary_encode(pc.struct_field(head, field)) for field in ("name", "mark"))
        is_exit, resumed = _among(mark, {"+++ "}) & _among(name, _ENDS), _among(mark, {"<... "})
        exits = list(zip(np.flatnonzero(is_exit).tolist(), pid[is_exit].tolist(), strict=True))
        rows = np.flatnonzero(_among(name, self.wanted) & (resumed | _among(mark, {""})))
        rows, text = self._joined(rows, resumed[rows], pid[rows], lines.take(to_arrow(rows)))
        for _, ended in exits:
            self._begun.pop(ended, None)
        return Block(_calls(rows, pid, name, text, start), exits, pid)

    def _joined(self, rows: Ints, resumed: Bools, pid: Ints, text: pa.Array) -> tuple[Ints, pa.Array]:
        """Lines of complete calls: two halves become one line, at the position of the first."""
        begins = to_numpy(pc.ends_with(text, _UNFINISHED))
        halves = np.flatnonzero(begins | resumed)
        self._begun = {}
        if not len(halves):
            return rows, text
        order = halves[np.argsort(pid[halves], kind="stable")]
        first, second = order[:-1], order[1:]
        pairs = begins[first] & resumed[second] & (pid[first] == pid[second])
        begin, end = first[pairs], second[pairs]
        left = np.setdiff1d(np.flatnonzero(begins), begin)
        for at in left.tolist():
            self._begun[int(pid[at])] = text[at].as_py().encode()
        head = pc.replace_substring_regex(text.take(to_arrow(begin)), r" <unfinished \.\.\.>\n$", "")
        tail = pc.struct_field(pc.extract_regex(text.take(to_arrow(end)), rf"^[^>]*{_RESUMED}(?P<rest>.*\n)$"), "rest")
        joined = pc.binary_join_element_wise(head, tail, scalar(""))
        complete = np.flatnonzero(~(begins | resumed))
        at = np.concatenate((rows[complete], rows[begin]))
        order = np.argsort(at, kind="stable")
        both = pa.concat_arrays([text.take(to_arrow(complete)), joined])
        return at[order], both.take(to_arrow(order))


def _calls(rows: Ints, pid: Ints, name: pa.DictionaryArray, text: pa.Array, start: Ints) -> Calls:
    fields = pc.extract_regex(text, _CALL)
    is_call = to_numpy(pc.is_valid(fields))
    if not is_call.all():
        keep = np.flatnonzero(is_call)
        rows, fields = rows[keep], fields.take(to_arrow(keep))
    real = pc.struct_field(fields, "real")
    took = _nanoseconds(pc.struct_field(fields, "s"), pc.struct_field(fields, "f"), missing=-1)
    return Calls(
        row=rows,
        pid=pid[rows],
        name=name.take(to_arrow(rows)),
        args=pc.struct_field(fields, "args"),
        value=_values(pc.struct_field(fields, "ret")),
        real=pc.if_else(pc.equal(real, scalar("")), pa.scalar(None, real.type), real),
        error=pc.struct_field(fields, "error"),
        start=start[rows],
        took=took,
    )


def _lines(data: bytes) -> pa.Array:
    """Complete lines; bytes that strace never writes become question marks."""
    raw = np.frombuffer(data, np.uint8)
    if len(raw) and int(raw.max()) > 127:
        raw = np.where(raw > 127, ord("?"), raw).astype(np.uint8)
    ends = np.flatnonzero(raw == ord("\n")) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(raw)))


def _among(column: pa.DictionaryArray, texts: Collection[str]) -> Bools:
    """Whether each text is one of these."""
    codes = [code for code, text in enumerate(column.dictionary.to_pylist()) if text in texts]
    return np.isin(to_numpy(column.indices), codes)


def integers(column: pa.Array, missing: int) -> Ints:
    """Numbers of digit strings; `missing` for empty ones and null."""
    filled = pc.if_else(pc.equal(column, scalar("")), scalar(str(missing)), column)
    return to_numpy(pc.cast(filled, pa.int64()), missing).astype(np.int64)


def _nanoseconds(seconds: pa.Array, fraction: pa.Array, *, missing: int = 0) -> Ints:
    """Nanoseconds from two digit strings each; `missing` if they are empty."""
    none = to_numpy(pc.equal(seconds, scalar("")))
    nanoseconds = integers(seconds, 0) * 1_000_000_000 + integers(pc.utf8_rpad(fraction, 9, "0"), 0)
    return np.where(none, missing, nanoseconds)


def _values(column: pa.Array) -> Ints:
    """Numbers and addresses; 0 for longer ones, `NO_VALUE` if nothing was returned."""
    plain = pc.match_substring_regex(column, r"^(?:-?\d{1,18}|0x[0-9a-f]{1,15})$")
    numbers = to_numpy(pc.cast(pc.if_else(plain, column, scalar("0")), pa.int64())).astype(np.int64)
    lost = to_numpy(pc.equal(column, scalar("?")))
    return np.where(lost, NO_VALUE, numbers)


# A quoted name, in which strace escapes quotes and backslashes.
_FIRST = (
    r"^(?:(?:AT_FDCWD|-?\d+)(?:<(?P<dir>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?)?(?:, )?)?"
    r'(?:"(?P<name>(?:[^"\\]|\\.)*)")?'
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_BETWEEN = "\n"
"""A character that is in no line."""


def plain(escaped: str) -> str:
    r"""A name without strace's escapes: `\303\251` becomes é, `\n` a line feed."""
    if "\\" not in escaped:
        return escaped
    raw = _ESCAPE.sub(_unescaped, escaped.encode())
    return raw.decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if escape[:1].isdigit():
        return bytes([int(escape, 8) & 255])
    return _LETTERS.get(escape, escape)


def named_first(args: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Path of the descriptor at the beginning of a call's arguments, and the name after it; empty if missing."""
    fields = pc.extract_regex(args, _FIRST)
    return pc.struct_field(fields, "dir"), pc.struct_field(fields, "name")


class Spellings:
    """Assigns codes to files as they are spelled: a folder and a name in it, either of which may be empty."""

    def __init__(self, paths: PathTable) -> None:
        self._paths = paths
        self._known: dict[str, int] = {_BETWEEN: -1}

    def codes(self, folder: pa.Array, name: pa.Array) -> Int32s:
        """Codes, shape (n,); -1 if nothing is named. Each distinct spelling in a block is looked up once."""
        return by_text(pc.binary_join_element_wise(folder, name, scalar(_BETWEEN)), self._code)

    def _code(self, spelling: str) -> int:
        code = self._known.get(spelling)
        if code is None:
            code = self._paths.code(joined(*spelling.split(_BETWEEN)))
            self._known[spelling] = code
        return code


def joined(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    if not folder or name.startswith("/"):
        return plain(name)
    return plain(f"{folder.rstrip('/')}/{name}" if name else folder)
