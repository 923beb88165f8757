"""The kernel of calls gives the same bits as numpy, and either continues where the other stopped."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from switched import needs_kernels, numpy_alone

from vani.calls import Flag, Kind, Layer
from vani.kernels import build, call, dtype_of
from vani.readers import positions
from vani.readers.functions import PositionRule
from vani.readers.nesting import LIBRARIES
from vani.readers.recorder.batch_builder import BatchBuilder, Chunk
from vani.readers.signatures import NO_VALUE, Signatures
from vani.readers.trace_reader import Piece

FUNCTIONS = ("open", "read", "write")
FILES, HANDLES = 5, 4


def signatures(
    rng: np.random.Generator, n: int, *, odd: bool, renames: bool, handles: bool, depths: int
) -> Signatures:
    """Calls of any kind, most of which touch one of few files."""
    common = [
        *range(10),
        *[PositionRule.ADVANCE] * 8,
        *[PositionRule.OPEN] * 3,
        PositionRule.AT,
        PositionRule.AT,
    ]
    value = rng.integers(-20, 100, n)
    size = rng.integers(0, 50, n)
    for column in (value, size):
        column[rng.random(n) < 0.1] = NO_VALUE
    if odd:
        value[rng.random(n) < 0.2] = rng.choice([1 << 59, -(1 << 59), (1 << 61) - 1, 1 << 41])
        size[rng.random(n) < 0.2] = rng.choice([1 << 40, 1 << 55, (1 << 40) + 1])
    flags = rng.choice([0, 1, 3, 7, 9, 11, 1 << 13], n)
    none = np.full(n, -1)
    return Signatures(
        func=rng.integers(-1, len(FUNCTIONS), n).astype(np.int16),
        layer=rng.choice([0, 0, 0, 1, 2, 3, 5, 6, 8], n).astype(np.int8),
        kind=rng.choice([0, 1, 2, 3, 5], n).astype(np.int8),
        depth=rng.integers(0, depths, n).astype(np.int8),
        site=none.astype(np.int32),
        thread=rng.choice([0, 0, 7, 4_000_000] if rng.random() < 0.5 else [0], n).astype(np.int32),
        file=rng.integers(-1, FILES, n).astype(np.int32),
        bytes=size,
        rule=rng.choice(common, n).astype(np.int8),
        flags=flags.astype(np.int16),
        value=value,
        slope=np.zeros(n, np.int64),
        slope_group=none.astype(np.int8),
        running=none.astype(np.int8),
        handle=(rng.integers(-1, HANDLES, n) if handles else none).astype(np.int32),
        binds=rng.random(n) < 0.4,
        rename_to=np.where(rng.random(n) < 0.2, rng.integers(0, FILES, n), -1).astype(np.int32)
        if renames
        else none.astype(np.int32),
    )


def batches(rng: np.random.Generator, **kinds) -> list[list[Chunk]]:
    """Ranks with their own table or a shared one, divided anywhere."""
    several, by_call = rng.random() < 0.3, rng.random() < 0.3
    origins = kinds.pop("origins")
    tables = [signatures(rng, int(rng.integers(1, 12)), **kinds) for _ in range(3 if several else 1)]
    found: list[list[Chunk]] = [[]]
    for rank in sorted(rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist()):
        table = tables[rank % len(tables)]
        n = int(rng.integers(1, 60))
        ids = rng.integers(0, len(table), n).astype(np.int32)
        start = np.cumsum(rng.integers(-2, 10, n))
        duration = rng.integers(0, 30, n)
        value = table.value[ids] + (rng.integers(0, 5, n) if by_call else 0)
        value[table.value[ids] == NO_VALUE] = NO_VALUE
        origin = rng.choice([-1, 2, 3, 5, 8], n).astype(np.int8) if origins and rng.random() < 0.7 else None
        cuts = [0, *sorted(rng.integers(0, n + 1, int(rng.integers(0, 4))).tolist()), n]
        for a, b in itertools.pairwise(cuts):
            if a < b:
                rows = slice(a, b)
                found[-1].append(
                    Chunk(
                        rank,
                        table,
                        ids[rows],
                        start[rows],
                        duration[rows],
                        value[rows] if by_call else None,
                        None if origin is None else origin[rows],
                    )
                )
                if rng.random() < 0.6:
                    found.append([])
    return [chunks for chunks in found if chunks]


def built(chunks: list[list[Chunk]], private: np.ndarray, by_time: bool, by_numpy: list[bool]):
    piece = Piece()
    builder = BatchBuilder(piece, functions=FUNCTIONS, private=private, by_time=by_time, handles=HANDLES)
    found = []
    for one, without in zip(chunks, by_numpy, strict=True):
        if without:
            with numpy_alone():
                found.append(builder.build(one))
        else:
            found.append(builder.build(one))
    return found, piece


@pytest.mark.slow
@needs_kernels
@given(
    seed=st.integers(0, 1 << 32),
    by_time=st.booleans(),
    odd=st.booleans(),
    renames=st.booleans(),
    handles=st.booleans(),
    origins=st.booleans(),
    depths=st.sampled_from([1, 3]),
)
def test_batch_agrees_with_numpy(seed, by_time, odd, renames, handles, origins, depths):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        chunks = batches(rng, odd=odd, renames=renames, handles=handles, origins=origins, depths=depths)
        private = rng.random(FILES) < 0.7
        mixed = (rng.random(len(chunks)) < rng.choice([0, 0.5])).tolist()
        found, piece = built(chunks, private, by_time, mixed)
        plain, plain_piece = built(chunks, private, by_time, [True] * len(chunks))
        for one, other in zip(found, plain, strict=True):
            one.validate(full=True)
            for name in one.schema.names:
                assert one[name].to_pylist() == other[name].to_pylist(), name
            assert one.nbytes == other.nbytes
        assert piece == plain_piece


@needs_kernels
def test_ids_that_the_table_does_not_have_are_not_looked_up():
    table = signatures(np.random.default_rng(1), 4, odd=False, renames=False, handles=False, depths=1)
    given_ = [
        [Chunk(0, table, np.array([wrong], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64), None)]
        for wrong in (4, 1 << 30)
    ]
    for chunks in given_:
        with pytest.raises(IndexError):
            built([chunks], np.ones(FILES, np.bool_), False, [False])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"run_calls": [2]}, "fewer calls than runs say"),
        ({"run_calls": [-1, 2], "run_rank": [0, 0]}, "a negative number"),
        ({"run_rank": [-1]}, "a negative rank"),
        ({"functions": 1}, "a function that is not named"),
        ({"files": []}, "a file without a state"),
        ({"handles": []}, "a handle without a place"),
        ({"ids": []}, "no calls"),
        ({"outer": 0}, "no room for depths"),
        ({"bits": 0}, "no room for bits"),
        ({}, "sound"),
    ],
)
@needs_kernels
def test_input_with_false_counts_is_declined(change, why):
    ids = np.array(change.get("ids", [0]), np.int32)
    n = len(ids)
    depths = change.get("outer", 1)
    out = call(
        "calls",
        ids=ids,
        run_rank=np.array(change.get("run_rank", [0]), np.int32),
        run_calls=np.array(change.get("run_calls", [1]), np.int64),
        table=np.zeros(1, dtype_of("calls", "table")),
        start=np.zeros(n, np.int64),
        duration=np.zeros(n, np.int64),
        functions=change.get("functions", 2),
        by_time=False,
        file_states=np.zeros(len(change.get("files", [0])), dtype_of("calls", "file_states")),
        handle_states=np.zeros(len(change.get("handles", [0])), dtype_of("calls", "handle_states")),
        threads=1,
        depths=depths,
        outer=np.zeros(depths, dtype_of("calls", "outer")),
        reach=np.zeros(4, dtype_of("calls", "reach")),
        bits=change.get("bits", 1),
    )
    assert (out is None) == bool(change), why


def test_numbers_in_c_match_the_code():
    text = (build.FOLDER / "call_state.h").read_text()
    numbers = {
        name: eval(value)
        for name, value in re.findall(r"\b((?:LAYER|KIND|FLAG|PAST)_\w+) = ([\d< ]+?)\s*[,}]", text)
    }
    rules = re.findall(r"\bRULE_(\w+)", re.search(r"RULE_NONE.*?}", text, re.DOTALL)[0])
    assert [PositionRule[name].value for name in rules] == list(range(len(PositionRule)))
    for name, value in numbers.items():
        kind, _, which = name.partition("_")
        source = {"LAYER": Layer, "KIND": Kind, "FLAG": Flag}.get(kind)
        assert value == (source[which] if source else getattr(positions, which)), name
    assert len(numbers) == 12
    assert len(LIBRARIES) == 4 == Layer.NETCDF - Layer.MPIIO + 1
