"""Call tables: encoded tables are read back, and invalid ones are refused.

The encoder is `tests/traces/recorder_writer.py`, which a separate test compares with real tables byte for byte.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import decode_call_table

from tests.traces.recorder_writer import CallTableEntry, encode_cst, encode_key
from vani.errors import TraceError
from vani.readers.signatures import CallTable

LAYOUTS = {"2.3": (1, False), "2.5p": (1, True), "2.5g": (1, True), "3.0": (4, True), "3.x-mt": (4, True)}
"""Layout -> (bytes of a function id, whether entries have a count); format document, sections 5.1 and 9."""


def decoded(buffer: bytes, layout: str) -> CallTable:
    function_bytes, counted = LAYOUTS[layout]
    return decode_call_table(buffer, function_bytes=function_bytes, counted=counted, where="0.cst")


# Any text without spaces; lone surrogates represent bytes that are not UTF-8.
ARGUMENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" ") | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF), max_size=8)  # fmt: skip
SIGNATURES = st.tuples(
    st.integers(0, 255),
    st.lists(ARGUMENTS, max_size=5).map(tuple),
    st.integers(0, 255),
    st.integers(0, 2**40),
)


@given(
    signatures=st.lists(SIGNATURES, max_size=8, unique=True),
    layout=st.sampled_from(sorted(LAYOUTS)),
    data=st.data(),
)
def test_signatures_are_found_by_id_in_any_stored_order(signatures, layout, data):
    entries = [
        CallTableEntry(i, 0, i + 1, encode_key(func, args, layout=layout, depth=depth, thread=thread))
        for i, (func, args, depth, thread) in enumerate(signatures)
    ]
    table = decoded(encode_cst(data.draw(st.permutations(entries)), layout=layout), layout)
    assert len(table) == len(signatures)
    assert table.func.tolist() == [s[0] for s in signatures]
    assert table.depth.tolist() == [s[2] for s in signatures]
    assert table.thread.tolist() == [s[3] for s in signatures]
    assert (
        table.count is None
        if layout == "2.3"
        else table.count.tolist() == [i + 1 for i in range(len(signatures))]
    )
    shown = [
        [a.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for a in s[1]] for s in signatures
    ]
    # A call without arguments has one empty text.
    assert table.args.to_pylist() == [s or [""] for s in shown]


def entry(args: tuple[str, ...], number: int = 0, **changed: int) -> bytes:
    """One entry of layout 3.0 whose lengths may be false."""
    text = "".join(f"{a} " for a in args).encode("utf-8", "surrogateescape")
    field = {"key": 18 + len(text), "text": len(text), "given": len(args), "number": number} | changed
    key = struct.pack("<qiBBi", 0, 3, 0, field["given"], field["text"]) + text
    return struct.pack("<iiiI", field["number"], 0, field["key"], 1) + key


def table_of(*entries: bytes, claimed: int | None = None) -> bytes:
    return struct.pack("<i", len(entries) if claimed is None else claimed) + b"".join(entries)


def test_neighbouring_texts_do_not_share_a_character():
    # C3 ends one text and A9 begins the next; side by side they would be an é.
    table = decoded(table_of(entry(("a\udcc3",)), entry(("\udca9b",), 1)), "3.0")
    assert table.args.to_pylist() == [["a�"], ["�b"]]


def test_newlines_tabs_and_controls_in_arguments_are_kept():
    args = ("a\nb", "c\td", "\x00\x1b[31m", "")
    assert decoded(table_of(entry(args)), "3.0").args.to_pylist() == [list(args)]


def test_an_argument_of_a_megabyte_is_kept():
    assert decoded(table_of(entry(("x" * 2**20,))), "3.0").args.to_pylist() == [["x" * 2**20]]


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (b"\0\0\0", "call table of 3 bytes"),
        (table_of(claimed=1), "claims 1 entry"),
        (table_of(entry(()), claimed=-1), "claims -1 entries"),
        (table_of(entry(()), claimed=2**31 - 1), "claims 2,147,483,647 entries"),
        (table_of(entry(("abcdefgh" * 20,)), claimed=2), "ends within entry 1 of 2"),
        (table_of(entry(()), entry((), 1), claimed=1), "34 bytes too many"),
        (table_of(entry(("a",), key=19)), "claims 19 bytes"),
        (table_of(entry(("a",), text=2**31 - 1)), "2,147,483,647 of them arguments"),
        (table_of(entry(("a",), text=-1, key=17)), "-1 of them arguments"),
        (table_of(entry(("a",), key=2**31 - 1)), "claims 2,147,483,647 bytes"),
        (table_of(entry((), 1)), "does not number its entries"),
        (table_of(entry((), -1)), "does not number its entries"),
        (table_of(entry(()), entry(())), "does not number its entries"),
        (table_of(entry(("a",), given=2)), "declares 2 arguments and contains 1"),
        (table_of(entry((), given=1)), "declares 1 arguments and contains 0"),
        (table_of(entry(("a",)))[:-1] + b"b", "do not end with a space"),
    ],
)
def test_table_that_violates_the_format_is_refused(buffer, message):
    with pytest.raises(TraceError, match=message) as refused:
        decoded(buffer, "3.0")
    assert str(refused.value).startswith("0.cst: ")


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_truncation_is_refused_with_a_trace_error(layout):
    keys = [encode_key(i, ("/a/é", str(i), "\udcff") * i, layout=layout) for i in range(4)]
    buffer = encode_cst([CallTableEntry(i, 0, 1, key) for i, key in enumerate(keys)], layout=layout)
    for length in range(len(buffer)):
        with pytest.raises(TraceError):
            decoded(buffer[:length], layout)


@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_every_changed_byte_gives_a_table_or_a_trace_error(changes):
    buffer = bytearray(table_of(*(entry(("/path/é", str(i), "%p") * (i % 3), i) for i in range(6))))
    for at, value in changes:
        buffer[at % len(buffer)] = value
    try:
        table = decoded(bytes(buffer), "3.0")
    except TraceError:
        return
    assert len(table.args.to_pylist()) == len(table)


def test_table_of_only_arguments_is_refused_before_it_is_split():
    count = (1 << 24) // 250 + 1
    entries = b"".join(struct.pack("<i", i) + rest for i, rest in enumerate([entry(("",) * 250)[4:]] * count))
    with pytest.raises(TraceError, match=f"claims {250 * count} arguments"):
        decoded(struct.pack("<i", count) + entries, "3.0")
