"""The files that runs created, from sources to the history, and the predictions from there."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

from tests.history.logs import write_log
from vani import centre
from vani.centre.history.runs import read, tables
from vani.centre.history.runs.store import Store
from vani.centre.placement_library.interactions import write_csv
from vani.centre.prediction.creations.extraction import (
    creations_of_profile,
    creations_of_trace,
    read_partial_run,
)
from vani.centre.prediction.creations.next_files import coming_paths
from vani.centre.prediction.creations.series import (
    Creations,
    nothing,
    of_sizes,
    pack_creations,
    unpack_creations,
)
from vani.errors import InputError
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import read_records
from vani.readers.darshan.totals import CreatedFiles
from vani.readers.darshan.totals import read_created as created_of
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
DEMO = ROOT / "vani" / "demo" / "ior-shared-file-8r"


def read_created(path: Path) -> CreatedFiles:
    return created_of(read_records(open_log(path)))


def run_of(*paths: str, size: int = 8, ranks: list[int] | None = None) -> Creations:
    made = of_sizes([size] * len(paths), ranks)
    return Creations(made.sizes, made.ranks, made.stripes, paths)


def names(
    past: list[Creations], count: int | None = None, begun: Creations | None = None
) -> list[str | None]:
    ranks = past[-1].ranks if count is None else np.full(count, -1)
    return coming_paths(past, begun or nothing(), ranks)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    for number in range(1, 6):
        write_log(
            tmp_path / "logs", number=number, day=number,
            values={"MAX_BYTE_WRITTEN": (1 << 20) * 2**number - 1, "F_OPEN_START_TIMESTAMP": 1.0},
        )  # fmt: skip
    place = tmp_path / "h.sqlite"
    centre.history_add(tmp_path / "logs", db=place, totals=True, workers=1, judge=0)
    return place


def test_log_gives_the_written_files(tmp_path):
    path = write_log(tmp_path, processes=3, values={"MAX_BYTE_WRITTEN": 4095})
    found = read_created(path)
    assert found.sizes.tolist() == [4096] * 3
    assert sorted(zip(found.ranks.tolist(), found.paths, strict=True)) == [
        (rank, f"/scratch/u1/solver/out.{rank}") for rank in range(3)
    ]


def test_file_read_before_it_was_written_existed_already(tmp_path):
    reads = {"BYTES_READ": 10, "F_READ_START_TIMESTAMP": 1.0, "F_WRITE_START_TIMESTAMP": 2.0}
    assert read_created(write_log(tmp_path, values=reads)).paths == ()


def test_bytes_written_replace_a_size_that_no_file_has(tmp_path):
    found = read_created(write_log(tmp_path, values={"MAX_BYTE_WRITTEN": (1 << 63) - 1}))
    assert found.sizes.tolist() == [1000] * 4


def test_creations_need_a_profile_that_lists_all_files():
    profile = Profile.load(GOLDEN / "v3-cm1like-16r.yaml")
    found = creations_of_profile(profile)
    assert found is not None
    assert 10_485_760 in found.sizes.tolist()
    assert "cm1out_000001.dat" in found.paths[0]
    few = profile.model_copy(update={"files": profile.files[:1]})
    assert creations_of_profile(few) is None


def test_trace_gives_rank_and_order():
    traces = ROOT.parent / "shared" / "traces"
    if not traces.exists():
        pytest.skip("the shared traces are not there")
    found = creations_of_trace(traces / "v3-haccio-fpp-8r")
    assert found is not None
    assert sorted(found.ranks.tolist()) == list(range(8))
    assert set(found.sizes.tolist()) == {28_965_824}
    shared = creations_of_trace(traces / "v3-ior-ssf-posix-8r")
    assert (shared.sizes.tolist(), shared.ranks.tolist()) == ([134_217_728], [-1])
    # fprintf's bytes are not in the trace, so the size of a Montage table is unknown.
    table = next((traces / "v3-workflow-montage").glob("001-mImgtbl"))
    assert len(creations_of_trace(table)) == 0


def test_packed_creations_are_unpacked():
    made = Creations(np.array([0, 1 << 62]), np.array([-1, 3]), np.array([0, 4]), ("/a b", "/\udcff"))
    found = unpack_creations(pack_creations(made))
    assert (found.sizes.tolist(), found.ranks.tolist(), found.stripes.tolist()) == (
        [0, 1 << 62],
        [-1, 3],
        [0, 4],
    )
    assert found.paths == ("/a b", "/\\xff")


@pytest.mark.parametrize(
    "tree",
    [{}, [], {"size": [-1], "rank": [0], "stripes": [0], "path": []}, {"size": [1], "rank": [], "stripes": [0], "path": []},
     {"size": [1 << 70], "rank": [0], "stripes": [0], "path": []}, {"size": [1], "rank": [0], "stripes": [0], "path": [7]}],
)  # fmt: skip
def test_invalid_packed_creations_are_refused(tree):
    with pytest.raises(ValueError, match="no creations"):
        unpack_creations(zlib.compress(json.dumps(tree).encode()))


def test_the_next_run_is_predicted_from_logs(db):
    found = centre.history_creations("solver", db=db)
    assert (found.method, found.law, found.runs) == ("run_law", "by a constant factor", 5)
    assert {one.size for one in found.creations} == {(1 << 20) * 64}
    assert sorted(one.rank for one in found.creations) == [0, 1, 2, 3]
    assert {one.path for one in found.creations} == {f"/scratch/u1/solver/out.{rank}" for rank in range(4)}
    assert all(one.low <= one.size <= one.high for one in found.creations)


def test_the_rest_of_a_run_is_predicted_from_its_beginning(db, tmp_path):
    (tmp_path / "begun.csv").write_text("rank,size\n0,5000000\n")
    found = centre.history_creations("solver", db=db, begun=tmp_path / "begun.csv", least=0)
    assert (found.task, found.begun) == ("rest_of_run", 1)
    assert sorted(one.rank for one in found.creations) == [1, 2, 3]
    assert {one.size for one in found.creations} == {5_000_000}


@pytest.mark.slow
def test_interaction_database_accepts_the_table_and_a_plan_the_jobs(db, tmp_path):
    found = centre.history_creations("solver", db=db)
    (tmp_path / "rows.csv").write_text(_csv(found, "-E 16M -c 1 -E -1 -c 4"))
    stored = centre.plan_store(tmp_path / "rows.csv", str(tmp_path / "place.sqlite"))
    assert (stored.files, stored.extents, stored.objections) == (4, 8, [])
    row = centre.plan_interactions(str(tmp_path / "place.sqlite"), "/scratch/u1/solver/out.2")[1]
    assert (row.extent_start, row.extent_end, row.stripe_count, row.mpi_rank) == (16 << 20, 64 << 20, 4, 2)
    assert row.stripe_size == 4 << 20
    jobs = centre.creations_jobs(found, "4")
    assert [one.size for one in jobs.jobs[0].creations] == [64 << 20] * 4
    plan = centre.plan_place(jobs, ROOT / "examples" / "plan" / "testbed-empty.yaml")
    assert all(len(extent.osts) == 4 for file in plan.files for extent in file.extents)


def _csv(found, layout):
    return write_csv(centre.creations_rows(found, layout))


def test_unknown_sizes_are_in_no_table(db):
    found = centre.history_creations("solver", db=db, method="same_position", least=0.5)
    assert {one.size for one in found.creations} == {None}
    assert all(one.probability < 0.5 for one in found.creations)
    with pytest.raises(InputError, match="no file has both a known name and size"):
        centre.creations_rows(found)


def test_single_run_gives_no_probability(tmp_path):
    write_log(tmp_path / "logs")
    centre.history_add(tmp_path / "logs", db=tmp_path / "h.sqlite", totals=True, workers=1, judge=0)
    found = centre.history_creations("solver", db=tmp_path / "h.sqlite")
    assert {(one.probability, one.low, one.high) for one in found.creations} == {(None, None, None)}
    assert "one run is known" in found.notes[0]


@pytest.mark.slow
def test_latest_category_is_used_and_others_are_mentioned(db, tmp_path):
    write_log(tmp_path / "more", user="u2", processes=2, number=9, day=20)
    centre.history_add(tmp_path / "more", db=db, totals=True, workers=1, judge=0)
    found = centre.history_creations("solver", db=db)
    assert (found.user, found.processes) == ("u2", 2)
    assert found.notes[0].startswith("2 categories of user and processes")
    assert centre.history_creations("solver", "u1", db=db).processes == 4
    with pytest.raises(InputError, match="no runs of solver by this user or with this number of processes"):
        centre.history_creations("solver", "u1", processes=2, db=db)


@pytest.mark.slow
def test_times_out_of_order_are_put_in_order(tmp_path):
    for day in (3, 1, 4, 2):
        write_log(tmp_path / "logs", number=day, day=day, values={"MAX_BYTE_WRITTEN": 1000 * 2**day - 1})
    centre.history_add(tmp_path / "logs", db=tmp_path / "h.sqlite", totals=True, workers=1, judge=0)
    found = centre.history_creations("solver", db=tmp_path / "h.sqlite", least=0)
    assert {one.size for one in found.creations} == {32_000}


@pytest.mark.slow
def test_creations_are_hidden_exported_imported_and_deleted_with_their_run(db, tmp_path):
    centre.history_export(tmp_path / "all.gz", db=db)
    centre.history_import(tmp_path / "all.gz", db=tmp_path / "copy.sqlite")
    assert _kept(tmp_path / "copy.sqlite") == _kept(db)
    centre.history_anonymise(tmp_path / "key", db=db)
    assert all(path.startswith("/path-") for one in _kept(db) for path in one)
    found = centre.history_creations("solver", db=db)
    assert "the history is anonymised" in found.notes[-1]
    centre.history_remove(user="u1", db=tmp_path / "copy.sqlite")
    assert _kept(tmp_path / "copy.sqlite") == []


def _kept(place: Path) -> list[tuple[str, ...]]:
    with Store(place).reading() as connection:
        return [unpack_creations(content).paths for _, content in read.contents(connection, tables.creations)]


def test_names_of_the_last_run_come_again():
    assert names([run_of("/a", "/b"), run_of("/a", "/b")]) == ["/a", "/b"]


def test_alternating_names_belong_to_the_run_using_them():
    one, other = run_of("/a/x"), run_of("/b/y")
    assert names([one, other, one, other]) == ["/a/x"]


def test_numbers_in_names_are_counted_on_from_run_to_run():
    runs = [run_of(f"/s/run{one:03}/out.0", f"/s/run{one:03}/out.1") for one in (8, 9, 10)]
    assert names(runs) == ["/s/run011/out.0", "/s/run011/out.1"]


def test_names_without_a_law_are_not_known():
    assert names([run_of("/s/17"), run_of("/s/3"), run_of("/s/99")]) == [None]


def test_beyond_the_last_run_names_are_counted_on():
    steps = [f"/s/{kind}{step:04}" for step in range(3) for kind in ("plot", "chk")]
    runs = [run_of(*steps), run_of(*steps)]
    assert names(runs, 8)[6:] == ["/s/plot0003", "/s/chk0003"]


def test_no_name_is_given_twice():
    assert names([run_of("/a", "/a")]) == ["/a", None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no column 'size'"),
        ("path,rank\n/a,1\n", "has no column 'size'"),
        ("size,color\n1,2\n", "column 'color' is not known"),
        ("size,size\n1,2\n", "column 'size' appears twice"),
        ("size\n-1\n", "begun.csv:2: size is '-1'; give 0 to 4,611,686,018,427,387,904"),
        ("size\nnan\n", "begun.csv:2: size is 'nan'"),
        ("size\n\n5\n", "begun.csv:2: size is ''"),
        ("size,rank\n5,\n6,-7\n", "begun.csv:3: rank is '-7'"),
    ],
)
def test_unreadable_beginning_is_reported_with_its_place(tmp_path, text, told):
    (tmp_path / "begun.csv").write_text(text)
    with pytest.raises(InputError) as error:
        read_partial_run(tmp_path / "begun.csv")
    assert told in str(error.value)
