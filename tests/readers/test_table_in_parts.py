"""Reading a call table in parts equals reading it at once, however it is divided and in any stored order."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import decode_call_table, read_trace
from tiny_traces import TINY, write_tiny

from tests.traces.recorder_writer import CallTableEntry, encode_cst, encode_key
from vani.errors import TraceError
from vani.readers.interpret import interpret
from vani.readers.paths import PathTable, complete_relative_paths
from vani.readers.recorder.call_table import (
    Buffer,
    SignaturePacker,
    call_table_parts,
)
from vani.readers.recorder.source import FramedTable, Inflater
from vani.readers.signatures import HandleTable, Signatures

FUNCTIONS = ("open", "write", "pwrite", "rename", "MPI_File_open", "MPI_File_write_at", "H5Fopen", "H5Fclose")
SHAPE = {"function_bytes": 4, "counted": True, "where": "recorder.cst"}

PATHS = st.sampled_from(
    ["/s/a", "/s//a", "/s/./b", ".//s/b", "x/../a", "a", "b", "ufs:/s/a", "/s/c/", "é", "a\udcff", "???", ""]
)
HANDLES = st.sampled_from(["0-0", "0-1", "1-0"])
NUMBERS = st.sampled_from(["0", "7", "300", "70000", "-5", str(2**40), "3*r+5", "-2147483648", "%p"])
CALLS = st.one_of(
    st.tuples(st.just("open"), st.tuples(PATHS, st.sampled_from(["0", "66", "578"]), st.just("420"))),
    st.tuples(st.just("write"), st.tuples(PATHS, st.just("%p"), NUMBERS)),
    st.tuples(st.just("pwrite"), st.tuples(PATHS, st.just("%p"), NUMBERS, NUMBERS)),
    st.tuples(st.just("rename"), st.tuples(PATHS, PATHS)),
    st.tuples(
        st.just("MPI_File_open"),
        st.tuples(st.just("MPI_COMM_WORLD"), PATHS, st.just("5"), st.just("%p"), HANDLES),
    ),
    st.tuples(
        st.just("MPI_File_write_at"),
        st.tuples(HANDLES, NUMBERS, st.just("%p"), NUMBERS, st.just("MPI_BYTE"), st.just("[0_0]")),
    ),
    st.tuples(st.just("H5Fopen"), st.tuples(PATHS, st.just("0"), st.just("0"))),
    st.tuples(st.just("absent"), st.just(())),
)


def entry_of(
    number: int, call: tuple[str, tuple[str, ...]], depth: int = 0, thread: int = 0
) -> CallTableEntry:
    func = FUNCTIONS.index(call[0]) if call[0] in FUNCTIONS else len(FUNCTIONS) + number % 3
    key = encode_key(func, call[1], layout="3.0", depth=depth, thread=thread)
    return CallTableEntry(number, 0, number + 1, key)


def as_lists(signatures: Signatures, paths: list[str]) -> dict[str, list]:
    rows = np.arange(len(signatures))
    found = {name: getattr(signatures, name)[rows] for name in Signatures.columns()}
    lists = {name: (column.dtype, column.tolist()) for name, column in found.items() if name != "handle"}
    # Codes of paths depend on the order in which they are read.
    for name in ("file", "rename_to"):
        lists[name] = [None if code < 0 else paths[code] for code in found[name].tolist()]
    # Only equality of handles matters, not their numbers.
    handles = found["handle"].tolist()
    lists["handle"] = [(-1 if h < 0 else handles.index(h)) for h in handles]
    return lists | {"unnamed": signatures.unnamed, "paths": sorted(paths)}


@given(
    calls=st.lists(
        st.tuples(CALLS, st.integers(0, 3), st.sampled_from([0, 1, 2**33 + 7])), min_size=1, max_size=12
    ),
    part_bytes=st.integers(1, 400),
    data=st.data(),
)
def test_signatures_and_paths_do_not_depend_on_the_parts(calls, part_bytes, data):
    entries = [entry_of(i, call, depth, thread) for i, (call, depth, thread) in enumerate(calls)]
    buffer = encode_cst(data.draw(st.permutations(entries)), layout="3.0")
    settings = {"interprocess_patterns": True, "intraprocess_patterns": True}

    table = PathTable()
    whole = interpret(decode_call_table(buffer, **SHAPE), FUNCTIONS, table, HandleTable(), **settings)
    complete_relative_paths(whole.file, whole.layer, table.paths)

    packer, some_paths, some_handles = SignaturePacker(len(calls)), PathTable(), HandleTable()
    counts = np.zeros(len(calls), np.int64)
    for part in call_table_parts(Buffer(buffer), **SHAPE, part_bytes=part_bytes):
        assert part.entries == len(calls)
        counts[part.ids] += part.table.count
        signatures = interpret(part.table, FUNCTIONS, some_paths, some_handles, **settings)
        packer.add(part.ids, signatures)
    packed = packer.packed(some_paths.paths)

    assert counts.tolist() == list(range(1, len(calls) + 1))
    assert as_lists(packed, some_paths.paths) == as_lists(whole, table.paths)
    assert packed.handle.max(initial=-1) < max(1, len(some_handles))


@given(
    part_bytes=st.integers(1, 200),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=2),
)
def test_damaged_table_is_refused_in_parts_and_as_a_whole(part_bytes, changes):
    calls = [
        ("open", ("/s/a", "66", "420")),
        ("rename", ("/s/a", "/s/b")),
        ("absent", ()),
        ("write", ("é", "%p", "1")),
    ]
    buffer = bytearray(encode_cst([entry_of(i, call) for i, call in enumerate(calls)], layout="3.0"))
    for at, value in changes:
        buffer[at % len(buffer)] = value

    def outcome(read) -> list | str:
        try:
            return read()
        except TraceError as error:
            assert str(error).startswith("recorder.cst: ")
            return "refused"

    def as_a_whole() -> list:
        return decode_call_table(bytes(buffer), **SHAPE).args.to_pylist()

    def in_parts() -> list:
        parts = call_table_parts(Buffer(bytes(buffer)), **SHAPE, part_bytes=part_bytes)
        return [args for part in parts for args in part.table.args.to_pylist()]

    whole, parts = outcome(as_a_whole), outcome(in_parts)
    # Parts come in stored order.
    assert whole == "refused" if parts == "refused" else sorted(map(str, whole)) == sorted(map(str, parts))


@pytest.fixture
def everything_is_large(monkeypatch):
    """Tables are read in parts and grammars in blocks, however small they are."""
    monkeypatch.setattr("vani.readers.recorder.call_table.PART_BYTES", 200)
    monkeypatch.setattr("vani.readers.recorder.call_table._SMALL_TABLE", 0)
    monkeypatch.setattr("vani.readers.recorder.batch_builder._LARGE", 4)
    monkeypatch.setattr("vani.readers.recorder.batches._AT_ONCE", 2)
    monkeypatch.setattr("vani.readers.recorder.unique_grammars.FEW", 0)
    monkeypatch.setattr("vani.readers.recorder.unique_grammars._BLOCK", 3)


def with_paths(rows, reading) -> list[dict]:
    """Rows with paths in place of codes, which depend on the order in which the paths are read."""
    paths = reading.reader.files()["path"].to_pylist()
    codes = {"file", "rename_to"}
    return [
        {name: paths[value] if name in codes and value is not None else value for name, value in row.items()}
        for row in rows.to_pylist()
    ]


@pytest.mark.parametrize("name", TINY)
@pytest.mark.sampled(6)
def test_trace_reads_the_same_with_any_threshold_for_large(name, tmp_path, request):
    write_tiny(tmp_path, name, ranks=5)
    usual = read_trace(tmp_path)
    request.getfixturevalue("everything_is_large")
    large = read_trace(tmp_path)
    assert with_paths(large.calls, large) == with_paths(usual.calls, usual) and large.problems == usual.problems == []
    assert sorted(map(str, large.reader.files().to_pylist())) == sorted(map(str, usual.reader.files().to_pylist()))
    assert large.reader.facts() == usual.reader.facts()
    counted = [
        sorted(map(str, with_paths(b, r))) for r in (usual, large) for b in r.reader.occurrences().batches()
    ]
    assert counted[0] == counted[1]


def frame_of(content: bytes, claimed: int | None = None) -> bytes:
    stream = zlib.compress(content)
    return struct.pack("<QQ", len(stream), len(content) if claimed is None else claimed) + stream


@given(content=st.binary(max_size=3000), sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_stream_read_in_small_pieces_is_complete(content, sizes, tmp_path_factory):
    file = tmp_path_factory.mktemp("frame") / "recorder.cst"
    file.write_bytes(b"before" + frame_of(content) + b"behind")
    table = FramedTable(file, 6, len(frame_of(content)), where="recorder.cst")
    found = b""
    while piece := table.read(sizes[len(found) % len(sizes)]):
        found += piece
    table.close()
    assert found == content == b"".join(_pieces(file, len(frame_of(content)), sizes))


def _pieces(file, packed: int, sizes: list[int]) -> list[bytes]:
    inflater = Inflater(file, 22, packed - 16)
    pieces = [inflater.read(sizes[0])]
    while pieces[-1]:
        pieces.append(inflater.read(sizes[len(pieces) % len(sizes)]))
    inflater.close()
    return pieces


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (frame_of(b"x" * 1000, claimed=999), "contains 999 bytes or more, not 999"),
        (frame_of(b"x" * 1000, claimed=1001), "contains 1,000 bytes or more, not 1,001"),
        (frame_of(b"x" * 1000)[:-3], "zlib frame claims"),
        (frame_of(b"x" * 1000, claimed=1 << 31), "claims to contain"),
        (b"\0" * 15, "has no header"),
    ],
)
def test_large_table_that_contradicts_its_header_is_refused(content, message, tmp_path):
    file = tmp_path / "recorder.cst"
    file.write_bytes(content)
    with pytest.raises(TraceError, match=message):
        read_all(FramedTable(file, 0, len(content), where="recorder.cst"))


def read_all(table: FramedTable) -> None:
    try:
        while table.read(100):
            pass
    finally:
        table.close()
