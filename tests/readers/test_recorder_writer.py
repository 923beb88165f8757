"""The writer that other tests trust, compared with real traces and with its own slow decoder."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples

from tests.traces.recorder_oracle import OracleTrace, decode_trace
from tests.traces.recorder_writer import (
    LAYERS,
    Call,
    CallTableEntry,
    Layout,
    compress_sequence,
    default_functions,
    encode_call_sites,
    encode_cst,
    encode_grammar,
    encode_key,
    encode_metadata,
    encode_rules,
    encode_times,
    write_trace,
    zframe,
)
from tests.traces.trace_generator import GeneratedLayout, Pattern, Workload, generate_trace

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
WITH_PATTERNS: tuple[Layout, ...] = ("2.5g", "3.0", "3.x-dat", "3.x-mt", "3.x-dat2")

SHARED = Path(__file__).parents[3] / "shared" / "traces"
REAL = [
    "v2-posix-mix-2r",
    "v2-ipc-mpiio-mix-4r",
    "v2-cm1like-8r",
    "v25g-mpiio-mix-4r",
    "v25g-noipc-ior-fpp-4r",
    "v25g-pr-ior-strided-8r",
    "v3-posix-mix-4r",
    "v3-noipc-rawts-ior-4r",
    "v3-tid-ptr-posix-mix-2r",
    "v3-nodepth-us-mpiio-mix-2r",
    "v3-interpr-ior-strided-8r",
    "v3-intrapr-ior-strided-8r",
    "v3-bothpr-ior-strided-8r",
    "v3-bothpr-mpiio-mix-4r",
    "v3-bothpr-posix-mix-4r",
    "v3-netcdf-pnetcdf-4r",
]
NEWEST = SHARED.with_name("traces-new")
needs_shared_traces = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared traces are not here"
)


def written_again(trace: OracleTrace, directory: Path, **more) -> OracleTrace:
    stated = trace.settings
    write_trace(
        directory,
        trace.calls,
        layout=trace.layout,
        interprocess=bool(stated["interprocess"]),
        compress_times=stated["compress"],
        interprocess_patterns=stated["inter"],
        intraprocess_patterns=stated["intra"],
        store_thread=stated.get("thread", True),
        store_depth=stated.get("depth", True),
        resolution=stated["resolution"],
        start_unix=stated["start"],
        functions=trace.functions,
        tracing=[layer for layer in LAYERS if stated.get(layer)],
        buffer_elements=stated["elements"],
        call_sites=trace.call_sites,
        **more,
    )
    return decode_trace(directory)


@needs_shared_traces
@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_written_again_is_the_same(name, tmp_path):
    real = decode_trace(SHARED / name)
    again = written_again(real, tmp_path)
    assert again.calls == real.calls
    # Everything except the choice of rules (and of the zlib library) is the tracer's, byte for byte.
    assert again.metadata == real.metadata
    assert again.raw_tables == real.raw_tables
    assert again.grammar_of_rank == real.grammar_of_rank
    assert again.stored == real.stored
    assert again.times == real.times
    assert {f.name for f in tmp_path.iterdir()} == {f.name for f in (SHARED / name).iterdir() if f.is_file()}


@needs_shared_traces
@pytest.mark.parametrize(
    "name", ["n1-mix-4r", "n2-mix-4r", "n2-hdf5-4r", "n2-nosite-mix-4r", "n2-bothpr-phases-4r", "nm-mix-4r"]
)
def test_a_real_trace_of_2026_written_again_is_the_same(name, tmp_path):
    real = decode_trace(NEWEST / name)
    again = written_again(real, tmp_path, version=(3, 0, 0))
    assert again.calls == real.calls and again.layout == real.layout
    assert again.metadata == real.metadata
    assert again.raw_tables == real.raw_tables
    assert again.call_sites == real.call_sites
    assert again.times == real.times


@needs_shared_traces
@pytest.mark.parametrize("name", REAL)
def test_a_real_grammar_written_again_is_the_same(name):
    real = decode_trace(SHARED / name)
    if real.grammar_of_rank is None:
        assert [encode_rules(rules) for rules in real.grammars] == real.raw_grammars
    else:
        assert [encode_rules(rules) for rules in real.grammars] == [
            real.raw_grammars[u] for u in real.grammar_of_rank
        ]


@needs_shared_traces
def test_our_grammars_are_about_as_small_as_the_tracers(tmp_path):
    for name in REAL:
        real = decode_trace(SHARED / name)
        ours = written_again(real, tmp_path / name)
        assert sum(map(len, ours.raw_grammars)) <= 1.1 * sum(map(len, real.raw_grammars)), name


@needs_shared_traces
def test_the_oracle_finds_the_numbers_of_recorder2text():
    # records_per_rank, first_tstart_s and last_tend_s of reference.json, counted from recorder2text.
    strided = decode_trace(SHARED / "v3-bothpr-ior-strided-8r")
    assert [len(calls) for calls in strided.calls] == [71, 68, 68, 68, 68, 68, 68, 68]
    assert min(c.start for calls in strided.calls for c in calls) * 1e-7 == pytest.approx(0.8887701)
    assert max(c.end for calls in strided.calls for c in calls) * 1e-7 == pytest.approx(1.1426045)
    # IOR: 8 ranks, 65536-byte transfers, segments of 8 * 65536 bytes, as its arguments show.
    seeks = [[int(c.args[1]) for c in calls if c.function == "lseek"] for calls in strided.calls]
    for rank, offsets in enumerate(seeks):
        assert offsets == [(segment * 8 + rank) * 65536 for segment in range(16)] * 2


def args_for(function: str) -> st.SearchStrategy[tuple[str, ...]]:
    offset = st.integers(-(2**40), 2**40).map(str) | st.integers(0, 8).map(lambda n: str(n * 4096))
    path = st.sampled_from(["/a", "/b", "/dir/ü\n", ""])
    match function:
        case "lseek" | "MPI_File_write_at" | "MPI_File_set_view":
            return st.tuples(path, offset, st.just("0"))
        case "pread" | "pwrite":
            return st.tuples(path, st.just("%p"), st.integers(0, 3).map(str), offset)
        case _:
            # No spaces (stored as `_`), no lone surrogates except those that represent bytes.
            texts = st.text(st.characters(codec="utf-8", exclude_characters=" "), max_size=5) | st.just(
                "\udcff"
            )
            return st.lists(texts, max_size=4).map(tuple)


FUNCTIONS = [
    "lseek",
    "pread",
    "pwrite",
    "MPI_File_write_at",
    "MPI_File_set_view",
    "open",
    "creat",
    "a_new_one",
]


@st.composite
def ranks_of_calls(draw: st.DrawFn) -> list[list[Call]]:
    signature = st.sampled_from(FUNCTIONS).flatmap(
        lambda f: st.builds(
            Call,
            st.just(f),
            args_for(f),
            depth=st.integers(0, 255),
            thread=st.sampled_from([0, 7, 2**64 - 1]),
        )
    )
    signatures = draw(st.lists(signature, min_size=1, max_size=6))
    bodies = draw(st.lists(st.lists(st.sampled_from(signatures), max_size=5), min_size=1, max_size=6))
    ranks = []
    for body in bodies:
        start, calls = 0, []
        for signature in body * draw(st.integers(1, 4)):
            start += draw(st.integers(-(10**7), 10**7) | st.just(2**32 - 10**9))
            lasts = draw(st.integers(0, 10**7))
            calls.append(
                Call(
                    signature.function,
                    signature.args,
                    signature.depth,
                    signature.thread,
                    start,
                    start + lasts,
                )
            )
        ranks.append(calls)
    return ranks


@pytest.mark.parametrize("layout", LAYOUTS)
@given(ranks=ranks_of_calls(), interprocess=st.booleans(), compress=st.booleans())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.sampled(4)
def test_written_trace_is_read_back_unchanged(layout, ranks, interprocess, compress, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trace")
    write_trace(
        directory,
        ranks,
        layout=layout,
        interprocess=interprocess and layout != "2.3",
        compress_times=compress,
        call_sites=[encode_call_sites([], [])] * len(ranks) if layout.endswith("2") else None,
    )
    trace = decode_trace(directory)
    assert trace.layout == layout
    assert trace.calls == ranks


@pytest.mark.parametrize("layout", WITH_PATTERNS)
@given(ranks=ranks_of_calls(), inter=st.booleans(), intra=st.booleans(), interprocess=st.booleans())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.sampled(2)
def test_offsets_come_back_from_patterns(layout, ranks, inter, intra, interprocess, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trace")
    write_trace(
        directory,
        ranks,
        layout=layout,
        interprocess=interprocess,
        interprocess_patterns=inter,
        intraprocess_patterns=intra,
    )
    assert decode_trace(directory).calls == ranks


def strided(ranks: int) -> list[list[Call]]:
    return [
        [Call("pwrite", ("/f", "%p", "10", str(10 * (ranks * i + rank)))) for i in range(4)]
        for rank in range(ranks)
    ]


def test_linear_offsets_become_lines(tmp_path):
    for ranks, texts in (
        (3, {"10*r+0", "10*r+30", "10*r+60", "10*r+90"}),
        (2, {str(10 * i) for i in range(8)}),
    ):
        write_trace(tmp_path / str(ranks), strided(ranks), layout="3.0", interprocess_patterns=True)
        trace = decode_trace(tmp_path / str(ranks))
        assert {entry.call.args[3] for entry in trace.tables[0].values()} == texts


@pytest.mark.parametrize(("layout", "stored"), [("3.0", ["100", "20", "-15"]), ("2.5g", ["100", "20", "5"])])
def test_reference_of_differences_depends_on_the_layout(layout, stored, tmp_path):
    # By hand from section 5.4: offsets 100, 120, 105.
    calls = [Call("lseek", ("/f", str(offset), "0")) for offset in (100, 120, 105)]
    calls += [Call("pread", ("/f", "%p", "1", str(offset))) for offset in (7, 9)]
    write_trace(tmp_path, [calls], layout=layout, intraprocess_patterns=True)
    trace = decode_trace(tmp_path)
    texts = [trace.tables[0][t].call.args for t in trace.stored[0]]
    assert [args[1] for args in texts[:3]] == stored
    assert [args[3] for args in texts[3:]] == ["7", "9"]


def expanded(rules: dict[int, list[tuple[int, int]]], rule: int = -1) -> list[int]:
    return [t for v, e in rules[rule] for _ in range(e) for t in ([v] if v >= 0 else expanded(rules, v))]


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 30))
def test_a_compressed_sequence_expands_to_itself(body, times):
    rules = compress_sequence(body * times)
    assert expanded(rules) == body * times
    used = {v for body in rules.values() for v, _ in body if v < 0}
    assert used | {-1} == set(rules)


def test_a_loop_costs_no_more_when_it_runs_longer():
    sizes = {len(encode_grammar(np.tile([0, 1, 1, 1, 2, 3, 4, 4], n))) for n in (10, 1000, 100_000)}
    assert len(sizes) == 1
    assert max(sizes) < 200


def test_a_negative_terminal_is_refused():
    with pytest.raises(ValueError, match="negative"):
        encode_grammar([1, -1])


# Bytes worked out by hand from the layout page.
def test_key_layout_matches_the_page():
    assert encode_key(5, ("/a b", ""), layout="2.5g", depth=1, thread=9) == (
        b"\x09\0\0\0\0\0\0\0\x05\x01\x02\x06\0\0\0/a_b  "
    )
    assert encode_key(300, (), layout="3.0") == b"\0" * 8 + b"\x2c\x01\0\0" + b"\0\0" + b"\0\0\0\0"


def test_call_site_adds_four_bytes_to_a_key():
    # Section 8: thread 8, function 4, depth 1, call site 4, number of arguments 1, length 4.
    key = encode_key(300, ("/a",), layout="3.x-dat2", depth=2, thread=9, site=0x01020304)
    assert key == b"\x09" + b"\0" * 7 + b"\x2c\x01\0\0" + b"\x02" + b"\x04\x03\x02\x01" + b"\x01" + b"\x03\0\0\0/a "
    assert encode_key(300, (), layout="3.x-dat", site=7) == encode_key(300, (), layout="3.0")


def test_call_sites_are_laid_out_as_the_page_says():
    found = encode_call_sites(["/a", b"\xff"], [(1, 2**33)])
    numbers = b"".join(n.to_bytes(4, "little") for n in (1, 2, 1, 5))
    assert found == numbers + b"/a\0\xff\0" + b"\x01\0\0\0" + b"\0\0\0\0\x02\0\0\0"


def test_call_table_layout_matches_the_page():
    entry = CallTableEntry(terminal=0, rank=3, count=2**32 + 1, key=b"xy")
    one = b"\x01\0\0\0"
    assert encode_cst([entry], layout="2.5p") == one + b"\0\0\0\0\x03\0\0\0\x02\0\0\0\x01\0\0\0xy"
    assert encode_cst([entry], layout="2.3") == one + b"\0\0\0\0\x02\0\0\0xy"


def test_times_are_relative_to_the_start_before_and_wrap():
    pairs = np.frombuffer(encode_times([10, 4, 30], [15, 9, 31]), dtype="<u4").reshape(-1, 2)
    assert pairs.tolist() == [[10, 15], [2**32 - 6, 2**32 - 1], [26, 27]]


def test_silent_rank_has_an_empty_rule(tmp_path):
    assert encode_grammar([]) == np.array([1, -1, 0], dtype="<i4").tobytes()
    write_trace(tmp_path, [[], [Call("close", ("/a",))]], layout="3.0")
    assert (tmp_path / "recorder.ts").read_bytes()[:8] == b"\0" * 8


def test_frames_state_both_sizes():
    frame = zframe(b"a" * 100)
    assert int.from_bytes(frame[:8], "little") == len(frame) - 16
    assert int.from_bytes(frame[8:16], "little") == 100


@pytest.mark.parametrize(
    ("layout", "names_at"), [("2.3", 32), ("2.4", 40), ("2.5p", 40), ("2.5g", 40), ("3.0", 1024)]
)
def test_function_names_begin_at_the_documented_place(layout, names_at):
    assert encode_metadata(layout, ["creat", "open"], ranks=2)[names_at:] == b"creat\nopen\n"


def test_new_metadata_has_cells_of_64_bytes():
    metadata = encode_metadata("3.x-mt", ["creat", "open"], ranks=2)
    assert metadata[56:] == b"creat".ljust(64, b"\0") + b"open".ljust(64, b"\0")
    with pytest.raises(ValueError, match="63 bytes"):
        encode_metadata("3.x-dat", ["x" * 64], ranks=1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_default_functions_fit_the_layout(layout):
    names = default_functions(layout, ["open", "mine"])
    assert names[0] == "creat"
    assert "mine" in names
    if layout.startswith("3."):
        assert names[255] == "user_function"
    else:
        assert len(names) <= 256


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"layout": "2.3", "interprocess": True}, "inter-process"),
        ({"layout": "2.5p", "intraprocess_patterns": True}, "patterns"),
        ({"layout": "1.0"}, "known are"),
        ({"layout": "3.0", "functions": ["creat"]}, "not in the list: open"),
        ({"layout": "3.x-dat", "call_sites": [b""]}, "no call sites"),
        ({"layout": "3.x-dat", "late": [0]}, "leaves ranks out"),
    ],
)
def test_values_that_a_layout_cannot_contain_are_refused(wish, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_trace(tmp_path, [[Call("open", ("/a", "0"))]], **wish)


def test_a_function_id_over_one_byte_is_refused(tmp_path):
    names = [f"f{i}" for i in range(300)]
    with pytest.raises(ValueError, match="function 299"):
        write_trace(tmp_path, [[Call("f299", ())]], layout="2.5g", functions=names)


@pytest.mark.parametrize("layout", get_args(GeneratedLayout))
@pytest.mark.parametrize("pattern", get_args(Pattern))
@pytest.mark.parametrize(
    "wish",
    [
        {"ranks": 1, "files": 1},
        {"ranks": 3, "files": 7, "calls_per_rule": 5},
        {"ranks": 5, "files": 2, "symbols": 6},
        {"ranks": 2, "files": 3, "shared_grammar": True},
        {"ranks": 3, "files": 3, "interprocess": False},
    ],
)
@pytest.mark.sampled(30)
def test_generated_trace_matches_the_generators_counts(layout, pattern, wish, tmp_path):
    workload = Workload(calls=501, layout=layout, pattern=pattern, **wish)
    generated = generate_trace(tmp_path, workload)
    trace = decode_trace(tmp_path)
    assert [len(calls) for calls in trace.calls] == [
        workload.calls_of(rank) for rank in range(workload.ranks)
    ]
    every = [call for calls in trace.calls for call in calls]
    assert generated.calls_by_function == Counter(call.function for call in every)
    for functions, total in (
        (("read", "pread"), generated.bytes_read),
        (("write", "pwrite"), generated.bytes_written),
    ):
        assert sum(int(call.args[2]) for call in every if call.function in functions) == total
    assert {call.args[0] for call in every if call.function == "open"} == {
        f"/lustre/scratch/run/0000/part-{file:07d}.dat" for file in range(workload.files)
    }


def test_generated_inner_calls_are_inside_outer_ones(tmp_path):
    generate_trace(tmp_path, Workload(calls=500, pattern="mixed"))
    calls = decode_trace(tmp_path).calls[0]
    inner = [(outer, call) for outer, call in pairwise(calls) if call.depth == 1]
    assert inner
    assert all(outer.start < call.start < call.end < outer.end for outer, call in inner)
    outer = [call for call in calls if call.depth == 0]
    assert all(one.end <= next_one.start for one, next_one in pairwise(outer))


def test_grammar_represents_far_more_calls_than_it_has_bytes(tmp_path):
    generated = generate_trace(tmp_path, Workload(calls=10**9, pattern="random", symbols=10_000, times=False))
    assert generated.calls == sum(generated.calls_by_function.values()) == 10**9
    assert generated.signatures == 10_002
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 10**6


def test_too_few_calls_for_the_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="too few"):
        generate_trace(tmp_path, Workload(calls=10, files=10))
