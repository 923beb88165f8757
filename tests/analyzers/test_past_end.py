"""Reads beyond the end of a file: `past_end`, clipped footprints and sizes. Expected values are counted by hand."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from call_tables import MILLISECOND, InventedTrace, Row, call, create, profile_of, read, write
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.int_table import IntTable
from vani.analyzers.intervals import Intervals
from vani.analyzers.measures import survey
from vani.analyzers.measures.survey import Survey, SurveyResult
from vani.analyzers.workload import BUCKETS
from vani.calls import FileClass, Flag, Kind, Layer
from vani.schema.profile import FileEntity, Profile


def profile(folder: Path, *rows: Row, files: int = 1) -> Profile:
    return profile_of([InventedTrace(list(rows), [FileClass.DATASET] * files)], folder)


def file(folder: Path, *rows: Row) -> FileEntity:
    return profile(folder, *rows).files[0]


def test_reads_beyond_written_bytes_are_past_the_end(tmp_path):
    found = file(
        tmp_path,
        create(at=0),
        write(offset=0, size=1000, at=1 * MILLISECOND),
        read(offset=500, size=4096, at=2 * MILLISECOND),
        read(offset=8192, size=100, at=3 * MILLISECOND),
    )
    assert found.io.past_end.read == (4096 - 500) + 100
    assert found.io.footprint.read == 500
    assert found.size == 1000


def test_a_truncation_that_lengthens_a_file_moves_its_end(tmp_path):
    longer = call(flags=Flag.RESIZE, offset=3000, at=1 * MILLISECOND)
    found = file(tmp_path, create(at=0), longer, read(offset=0, size=4000, at=2 * MILLISECOND))
    assert found.io.past_end.read == 1000
    assert found.size == 3000


def test_the_end_of_a_file_that_the_run_only_read_is_unknown(tmp_path):
    found = file(tmp_path, call(flags=Flag.OPEN), read(offset=0, size=1 << 20, at=1 * MILLISECOND))
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 1 << 20
    assert found.size is None


def test_later_writes_do_not_explain_earlier_reads(tmp_path):
    found = file(
        tmp_path,
        create(at=0),
        read(offset=0, size=100, at=10 * MILLISECOND),
        write(offset=0, size=100, at=20 * MILLISECOND),
    )
    assert found.io.past_end.read == 100


def test_reads_before_the_run_recreates_a_file_may_find_old_data(tmp_path):
    # A restart: 10,000 B of the old file are read, then the file is truncated and 1,000 B are written.
    found = file(
        tmp_path,
        call(flags=Flag.OPEN, at=0),
        read(offset=0, size=10_000, at=1 * MILLISECOND),
        create(at=20 * MILLISECOND),
        write(offset=0, size=1000, at=21 * MILLISECOND),
    )
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 10_000


def test_only_reads_after_a_file_was_recreated_are_judged(tmp_path):
    found = file(
        tmp_path,
        read(offset=0, size=10_000, at=1 * MILLISECOND),
        create(at=20 * MILLISECOND),
        write(offset=0, size=1000, at=21 * MILLISECOND),
        read(offset=0, size=4096, at=22 * MILLISECOND),
    )
    assert found.io.past_end.read == 3096


def test_a_read_that_the_clocks_put_before_the_making_of_its_file_is_not_past_the_end(tmp_path):
    # v3-workflow-coupled, 03-resim: by its own clock rank 0 reads earlier what rank 1, whose clock is ahead,
    # wrote.
    found = file(
        tmp_path,
        read(offset=0, size=2 << 20, rank=0, at=405 * MILLISECOND),
        create(rank=1, at=425 * MILLISECOND),
        write(offset=0, size=2 << 20, rank=1, at=426 * MILLISECOND),
    )
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 2 << 20


def test_a_stream_opened_for_writing_without_a_traced_write_has_no_known_end(tmp_path):
    # Recorder 3 does not trace fprintf: v3-workflow-montage's template.hdr has 302 B (comparison.csv), none
    # of which are in the trace.
    found = file(
        tmp_path,
        create(at=0, layer=Layer.STDIO),
        read(offset=0, size=2880, at=1 * MILLISECOND, layer=Layer.STDIO),
    )
    assert found.size is None
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 2880


def test_created_file_without_a_recorded_write_has_an_unknown_end(tmp_path):
    # It may be empty. More likely it was filled by calls that leave no record: mmap, copy_file_range,
    # sendfile, aio_write.
    found = file(tmp_path, create(at=0), read(offset=0, size=10, at=1 * MILLISECOND))
    assert found.size is None
    assert found.io.past_end.read is None


def test_the_end_of_a_file_is_known_from_when_its_length_was_set(tmp_path):
    found = file(
        tmp_path,
        read(offset=0, size=9000, at=1 * MILLISECOND),
        call(flags=Flag.RESIZE, offset=1000, at=20 * MILLISECOND),
        read(offset=0, size=4096, at=21 * MILLISECOND),
    )
    assert found.io.past_end.read == 3096
    assert found.size == 1000


@pytest.mark.parametrize(
    "blind",
    [
        {"offset": None, "size": 500},
        {"offset": None, "size": 500, "flags": Flag.APPEND},
        {"offset": 0, "size": None},
    ],
    ids=["at an unknown place", "appended", "of unknown size"],
)
def test_a_write_of_unknown_extent_leaves_the_end_unknown(tmp_path, blind):
    found = file(
        tmp_path,
        create(at=0),
        write(offset=0, size=100, at=1 * MILLISECOND),
        write(at=2 * MILLISECOND, **blind),
        read(offset=0, size=600, at=3 * MILLISECOND),
    )
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 600


def test_appended_data_of_unknown_place_adds_to_footprint_and_size(tmp_path):
    found = file(
        tmp_path,
        create(at=0),
        write(offset=0, size=100, at=1 * MILLISECOND),
        *(write(offset=None, size=50, flags=Flag.APPEND, rank=r, at=(2 + r) * MILLISECOND) for r in range(4)),
    )
    assert found.io.footprint.written == 300
    assert found.size == 300


def test_read_shared_by_many_processes_is_one_footprint(tmp_path):
    # Contract: 1,280 ranks reading one 4 KiB file: 4 KiB.
    found = file(tmp_path, *(read(offset=0, size=4096, rank=r, at=r * 1000) for r in range(40)))
    assert found.io.bytes.read == 40 * 4096
    assert found.io.footprint.read == 4096


def test_workflow_has_values_known_for_some_of_its_files(tmp_path):
    found = profile(
        tmp_path,
        create(at=0),
        write(offset=0, size=50, at=1 * MILLISECOND),
        read(offset=0, size=150, at=1 * MILLISECOND),
        call(Kind.METADATA, 1, flags=Flag.OPEN, at=2 * MILLISECOND),
        read(1, offset=0, size=700, at=3 * MILLISECOND),
        files=2,
    )
    assert found.workflow.io.past_end.read == 100
    assert {f.path: f.io.past_end.read for f in found.files} == {"/data/0": 100, "/data/1": None}


def kept_moments(moments, level=0):
    """The end of each file that a partition passes on; `moments[file, moment]` is the furthest end."""
    keys = np.array([f * (BUCKETS + 1) + m for f, m in sorted(moments)], np.int64)
    reach = IntTable(keys, {"reach": np.array([moments[k] for k in sorted(moments)], np.int64)}) if moments else IntTable()
    return SurveyResult(Intervals(), IntTable(), reach, np.empty(0, np.int64), level)


@given(
    moments=st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, BUCKETS)), st.integers(1, 99), max_size=40),
    most=st.integers(1, 20),
    seed=st.randoms(use_true_random=False),
)
def test_resolution_of_moments_depends_only_on_all_of_them(moments, most, seed):
    with patch.object(survey, "_MAX_REACH", most):
        once = Survey().combine([kept_moments(moments)])
        # The same in parts with some moments in common, combined in any order as a tree.
        parts = [kept_moments({k: v for k, v in moments.items() if seed.random() < 0.6}) for _ in range(5)]
        parts.append(kept_moments(moments))
        seed.shuffle(parts)
        while len(parts) > 1:
            some, parts = parts[:3], parts[3:]
            parts.append(Survey().combine(some))
    assert parts[0].level == once.level
    assert parts[0].reach.keys.tolist() == once.reach.keys.tolist()
    assert (parts[0].reach["reach"] == once.reach["reach"]).all() if moments else not len(once.reach)
    assert len(once.reach) <= most or BUCKETS >> once.level == 0
    if once.level:
        with patch.object(survey, "_MAX_REACH", 1 << 30):
            finer = Survey().combine([kept_moments(moments)]).reach
        finer_still = {(k // (BUCKETS + 1), k % (BUCKETS + 1) >> once.level - 1) for k in finer.keys.tolist()}
        assert len(finer_still) > most, "one level less were too many"


def test_coarser_moments_find_less_beyond_the_end_and_never_more(tmp_path, monkeypatch):
    rows = [create(at=0)]
    for step in range(1, 200):
        rows.append(write(offset=(step - 1) * 100, size=100, at=10 * step * MILLISECOND))
        rows.append(read(offset=0, size=step * 100 + 50, at=(10 * step + 5) * MILLISECOND))
    exact = file(tmp_path / "a", *rows)
    monkeypatch.setattr(survey, "_MAX_REACH", 8)
    told = profile(tmp_path / "b", *rows)
    coarse = told.files[0]
    assert "are known at 8 moments of the run" in told.provenance["io.past_end"]
    assert exact.io.past_end.read == 199 * 50

    def moment(time_ns: int) -> int:
        return time_ns // piece_ns >> 9

    piece_ns = -(-(round(told.traces[0].span_s * 1e9) + 1) // BUCKETS)
    expected = 0
    for one in rows:
        if one["kind"] == Kind.READ:
            ended = moment(one["start_ns"] + one["duration_ns"])
            written = [
                w["offset"] + w["bytes"] for w in rows if w["kind"] == Kind.WRITE and moment(w["start_ns"]) <= ended
            ]
            expected += max(0, one["bytes"] - max(written))
    assert 0 < expected < exact.io.past_end.read
    assert coarse.io.past_end.read == expected
    assert coarse.size == exact.size == 19_900
