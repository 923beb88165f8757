"""Decodes Recorder traces one number at a time: slow and plain, to check fast readers and the writer.

Shares only the `Call` record with them. Assumes an undamaged trace: any fault ends in a Python error or an
assertion.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.traces.recorder_writer import Call

__all__ = ["Entry", "OracleTrace", "decode_trace"]

Rules = dict[int, list[tuple[int, int]]]

_STRUCTS = {
    "2.3": ("<i4xddii", "ranks start resolution elements algorithm"),
    "2.5p": ("<i4xddiii4x", "ranks start resolution elements algorithm interprocess"),
    "2.5g": (
        "<i6?6xddi4?",
        "ranks posix mpi mpiio hdf5 thread depth start resolution elements compress interprocess inter intra",
    ),
    "3.0": (
        "<i8?4xddi4?",
        "ranks posix mpi mpiio hdf5 pnetcdf netcdf thread depth start resolution elements "
        "compress interprocess inter intra",
    ),
    "3.x": (
        "<5i8?4xddi4?",
        "major minor patch ranks names posix mpi mpiio hdf5 pnetcdf netcdf thread depth start resolution "
        "elements compress interprocess inter intra",
    ),
}
_AT = ("MPI_File_read_at", "MPI_File_read_at_all", "MPI_File_write_at", "MPI_File_write_at_all")
_LINE_ARGUMENT = {
    "lseek": 1,
    "lseek64": 1,
    "pread": 3,
    "pread64": 3,
    "pwrite": 3,
    "pwrite64": 3,
} | dict.fromkeys(_AT, 1)
_DIFFERENCE_ARGUMENT = {
    "lseek": 1,
    "lseek64": 1,
    "pwrite": 3,
    "pwrite64": 3,
    "MPI_File_set_view": 1,
} | dict.fromkeys(_AT, 1)
_LINE = re.compile(r"(-?\d+)\*r\+(-?\d+)")
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Entry:
    """One call-table entry as stored, and the call that its bytes stand for (offsets as stored)."""

    rank: int
    count: int
    key: bytes
    call: Call


@dataclass
class OracleTrace:
    """A whole trace in memory.

    `calls` has plain offsets and ticks since each rank's start; `stored` the terminal ids behind them. `tables`,
    `grammars` and `times` are per rank (shared objects if the trace shares them), and contain the inflated bytes of
    the files.
    """

    layout: str
    settings: dict[str, Any]
    functions: list[str]
    metadata: bytes
    tables: list[dict[int, Entry]] = field(default_factory=list)
    grammars: list[Rules] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)
    stored: list[list[int]] = field(default_factory=list)
    calls: list[list[Call]] = field(default_factory=list)
    raw_tables: list[bytes] = field(default_factory=list)
    raw_grammars: list[bytes] = field(default_factory=list)
    grammar_of_rank: list[int] | None = None
    call_sites: list[bytes] | None = None


def decode_trace(directory: Path) -> OracleTrace:
    """Decode every call of the trace in `directory`."""
    layout = layout_of(directory)
    read = _sections(directory) if "dat" in layout else lambda name: (directory / name).read_bytes()
    trace = _metadata(layout, read("recorder.mt"))
    framed = layout not in ("2.3", "2.4", "2.5p")
    ranks = trace.settings["ranks"]
    unframe: Callable[[bytes], list[bytes]] = (
        (lambda data: list(_frames(data))) if framed else (lambda data: [data])
    )
    if trace.settings["interprocess"]:
        *ids, unique = _ints(read("ug.mt"))
        trace.grammar_of_rank = ids
        trace.raw_tables = unframe(read("recorder.cst" if framed else "0.cst"))
        grammars = unframe(read("ug.cfg")) if framed else [read(f"{u}.cfg") for u in range(unique)]
        assert len(grammars) == unique and len(ids) == ranks
        trace.raw_grammars = grammars
        table = _table(trace.raw_tables[0], trace)
        rules = [_rules(content) for content in grammars]
        trace.tables, trace.grammars = [table] * ranks, [rules[u] for u in ids]
    else:
        trace.raw_tables = [unframe(read(f"{rank}.cst"))[0] for rank in range(ranks)]
        trace.raw_grammars = [unframe(read(f"{rank}.cfg"))[0] for rank in range(ranks)]
        trace.tables = [_table(content, trace) for content in trace.raw_tables]
        trace.grammars = [_rules(content) for content in trace.raw_grammars]
    trace.times = (
        list(_segments(read("recorder.ts"), ranks, trace.settings["compress"]))
        if framed
        else [read(f"{rank}.ts") for rank in range(ranks)]
    )
    if layout.endswith("2"):
        with suppress(KeyError):
            trace.call_sites = [read(f"{rank}.callsites") for rank in range(ranks)]
    trace.stored = [_expand(rules) for rules in trace.grammars]
    positions = (
        _positions_in_groups(trace) if trace.settings["inter"] else [defaultdict(int) for _ in range(ranks)]
    )
    trace.calls = [list(_calls(trace, rank, positions[rank])) for rank in range(ranks)]
    return trace


def layout_of(directory: Path) -> str:
    """Recognise the layout from the existing files."""
    if (directory / "recorder.dat").exists():
        return "3.x-dat2" if (directory / "recorder.dat").read_bytes()[8] == 2 else "3.x-dat"
    if not (directory / "VERSION").exists():
        return "3.x-mt2" if (directory / "0.callsites").exists() else "3.x-mt"
    version = (directory / "VERSION").read_text()
    if version.startswith("2.5"):
        return "2.5g" if (directory / "recorder.ts").exists() else "2.5p"
    return version[:3]


def _metadata(layout: str, data: bytes) -> OracleTrace:
    kind = "3.x" if layout.startswith("3.x") else {"2.4": "2.5p"}.get(layout, layout)
    form, names = _STRUCTS[kind]
    settings = dict.fromkeys(("interprocess", "inter", "intra", "compress"), False)
    settings |= dict(zip(names.split(), struct.unpack_from(form, data), strict=True))
    if kind == "3.x":
        cells = data[56:]
        functions = [cells[i : i + 64].rstrip(b"\0").decode() for i in range(0, len(cells), 64)]
        assert len(functions) == settings["names"]
    else:
        at = 1024 if kind == "3.0" else struct.calcsize(form)
        assert data.endswith(b"\n")
        functions = data[at:].decode().split("\n")[:-1]
    return OracleTrace(layout, settings, functions, data)


def _sections(directory: Path) -> Callable[[str], bytes]:
    data = (directory / "recorder.dat").read_bytes()
    magic, _, count = struct.unpack_from("<8sII", data)
    assert magic == b"RECORDER"
    names = [
        "recorder.mt",
        "recorder.ts",
        "recorder.cst",
        "ug.cfg",
        "ug.mt",
        "{}.cst",
        "{}.cfg",
        "{}.callsites",
    ]
    parts = {}
    for i in range(count):
        kind, rank, offset, size = struct.unpack_from("<IiQQ", data, 16 + 24 * i)
        name = names[kind].format(rank)
        # The parts of a late rank are separate files.
        parts[name] = data[offset : offset + size] if size else (directory / name).read_bytes()
    return parts.__getitem__


def _ints(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def _frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        packed, size = struct.unpack_from("<QQ", data, at)
        content = zlib.decompress(data[at + 16 : at + 16 + packed])
        assert len(content) == size
        yield content
        at += 16 + packed


def _segments(data: bytes, ranks: int, compressed: bool) -> Iterator[bytes]:
    at = 8 * ranks
    for size in struct.unpack_from(f"<{ranks}Q", data):
        segment = data[at : at + size]
        at += size
        yield next(_frames(segment)) if compressed and segment else segment
    assert at == len(data)


def _table(data: bytes, trace: OracleTrace) -> dict[int, Entry]:
    at, table = 4, {}
    for _ in range(*struct.unpack_from("<i", data)):
        if trace.layout == "2.3":
            terminal, length = struct.unpack_from("<ii", data, at)
            rank, count, at = 0, 0, at + 8
        else:
            terminal, rank, length, count = struct.unpack_from("<iiiI", data, at)
            at += 16
        key = data[at : at + length]
        at += length
        table[terminal] = Entry(rank, count, key, _call_of(key, trace))
    assert at == len(data) and sorted(table) == list(range(len(table)))
    return table


def _call_of(key: bytes, trace: OracleTrace) -> Call:
    head, site = "<QiBBi" if trace.layout.startswith("3") else "<QBBBi", 0
    if trace.layout.endswith("2"):
        head = "<QiBIBi"
        thread, function, depth, site, count, length = struct.unpack_from(head, key)
    else:
        thread, function, depth, count, length = struct.unpack_from(head, key)
    text = key[struct.calcsize(head) :]
    args = tuple(arg.decode("utf-8", "surrogateescape") for arg in text.split(b" ")[:-1])
    assert len(text) == length and len(args) == count
    return Call(trace.functions[function], args, depth, thread, site=site)


def _rules(data: bytes) -> Rules:
    numbers = iter(_ints(data))
    rules = {}
    for _ in range(next(numbers)):
        rule, symbols = next(numbers), next(numbers)
        rules[rule] = [(next(numbers), next(numbers)) for _ in range(symbols)]
    assert next(numbers, None) is None
    return rules


def _expand(rules: Rules) -> list[int]:
    out: list[int] = []
    stack = [(-1, 1)]
    while stack:
        value, exponent = stack.pop()
        if value >= 0:
            out += [value] * exponent
            continue
        if exponent > 1:
            stack.append((value, exponent - 1))
        stack += reversed(rules[value])
    return out


def _positions_in_groups(trace: OracleTrace) -> list[defaultdict[str, int]]:
    """Give each rank its position, for each function, among the ranks with equally many signatures of it."""
    positions: list[defaultdict[str, int]] = [defaultdict(int) for _ in trace.stored]
    for function in _LINE_ARGUMENT:
        members: defaultdict[int, int] = defaultdict(int)
        for rank, (table, terminals) in enumerate(zip(trace.tables, trace.stored, strict=True)):
            size = sum(table[t].call.function == function for t in set(terminals))
            positions[rank][function] = members[size]
            members[size] += 1
    return positions


def _calls(trace: OracleTrace, rank: int, position: defaultdict[str, int]) -> Iterator[Call]:
    pairs = list(struct.iter_unpack("<II", trace.times[rank]))
    assert len(pairs) == len(trace.stored[rank])
    reference: dict[str, int] = {}
    before = 0
    for terminal, (ds, de) in zip(trace.stored[rank], pairs, strict=True):
        call = trace.tables[rank][terminal].call
        start = before + _ticks(ds, trace)
        call = replace(call, start=start, end=before + _ticks(de, trace))
        before = start
        if trace.settings["inter"]:
            call = _resolved_line(call, position[call.function])
        yield _resolved_difference(call, reference, trace) if trace.settings["intra"] else call


def _ticks(delta: int, trace: OracleTrace) -> int:
    """Interpret values within 10 s of the wrap as negative: with threads, starts may go back."""
    return delta - 2**32 if delta >= 2**32 - round(10 / trace.settings["resolution"]) else delta


def _resolved_line(call: Call, position: int) -> Call:
    i = _LINE_ARGUMENT.get(call.function, len(call.args))
    line = _LINE.fullmatch(call.args[i]) if i < len(call.args) else None
    return call if line is None else _with_argument(call, i, int(line[1]) * position + int(line[2]))


def _resolved_difference(call: Call, reference: dict[str, int], trace: OracleTrace) -> Call:
    i = _DIFFERENCE_ARGUMENT.get(call.function, len(call.args))
    if i >= len(call.args) or not _NUMBER.fullmatch(call.args[i]):
        return call
    offset = int(call.args[i]) + reference.get(call.function, 0)
    if trace.layout != "2.5g" or call.function not in reference:
        reference[call.function] = offset
    return _with_argument(call, i, offset)


def _with_argument(call: Call, i: int, number: int) -> Call:
    return replace(call, args=(*call.args[:i], str(number), *call.args[i + 1 :]))
