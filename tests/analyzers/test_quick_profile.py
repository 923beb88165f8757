"""`vani profile --quick`: every value equals the full profile's, and every omission has a reason."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from invented import examples
from quick_differences import differences, without_reason

import vani
from tests.traces.recorder_writer import Call, encode_call_sites, write_trace
from tests.traces.trace_generator import Workload, generate_trace
from vani.analyzers.quick import counts
from vani.errors import InputError
from vani.schema.job import Job

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
BROKEN = {"v2-killed-2r", "v3-killed-2r", "v3-truncated-s3dio-8r"}  # by MANIFEST.yaml
LONG = {"v2-medium-smallio-8r", "v3-medium-smallio-8r", "v3-large-smallio-8r", "v3-workflow-montage", "v2-mdtest-8r", "v3-mdtest-8r"}


def bundled() -> list[str]:
    return sorted(p.name for p in DATA.iterdir() if p.is_dir() and p.name not in BROKEN)


def shared() -> list[pytest.ParameterSet]:
    newest = SHARED.with_name("traces-new")
    traces = [p for p in (*sorted(SHARED.glob("v*")), *sorted(newest.glob("n*"))) if p.is_dir()]
    return [
        pytest.param(p, marks=pytest.mark.slow if p.name in LONG else (), id=p.name)
        for p in traces
        if p.name not in BROKEN and p.name not in bundled()
    ]


REQUESTS = ("accesses", "interfaces")
"""Attributes with requests of libraries, which a quick profile cannot tell from those on renamed files."""


def assert_equal(*traces: Path, without: tuple[str, ...] = (), **options) -> tuple[vani.Profile, vani.Profile]:
    with tempfile.TemporaryDirectory() as store:
        full = vani.profile(*traces, files=None, store=store, **options)
    quick = vani.profile(*traces, files=None, quick=True, **options)
    if without:
        # A file that libraries alone move data of is known only by the order of calls, which binds handles.
        assume(full.dataset.files == len(full.files))
    assert [one for one in differences(quick, full) if not one[0].startswith(without)] == []
    assert {where for where in without_reason(quick, full) if not where.startswith(without)} == set()
    assert_lists_files(quick, full)
    return quick, full


def assert_lists_files(quick: vani.Profile, full: vani.Profile) -> None:
    """The same files, except renamed ones, whose last name a quick profile does not know."""
    listed, all_files = {f.path for f in quick.files}, {f.path for f in full.files}
    assert listed <= all_files
    assert listed == all_files or quick.workflow.files.total is None


@pytest.mark.parametrize("name", bundled())
@pytest.mark.sampled(10)
def test_bundled_real_traces(name):
    assert_equal(DATA / name)


@pytest.mark.slow
@pytest.mark.parametrize("trace", shared())
def test_shared_real_traces(trace):
    assert_equal(trace)


# ---------------------------------------------------------------- made traces

PATHS = ["/s/a", "/s/b.h5", "/s/b.nc", "/proc/self/maps", "/s/d/../a", "stdout", "???", "/s/lib.so.1"]
PATH = st.sampled_from(PATHS)
SIZE = st.sampled_from(["0", "1", "100", "4096", "-1", "x"])
ONE = st.one_of(
    st.tuples(st.just("open"), PATH, st.sampled_from(["0", "66", "578", "1025", "65536"]), st.just("420")),
    st.tuples(st.just("fopen"), PATH, st.sampled_from(["r", "w", "a+"])),
    st.tuples(st.sampled_from(["read", "write"]), PATH, st.just("%p"), SIZE),
    st.tuples(st.sampled_from(["pread", "pwrite"]), PATH, st.just("%p"), SIZE, st.sampled_from(["0", "50"])),
    st.tuples(st.just("fwrite"), st.just("%p"), SIZE, SIZE, PATH),
    st.tuples(st.just("lseek"), PATH, SIZE, st.sampled_from(["0", "1", "2"])),
    st.tuples(st.sampled_from(["unlink", "close", "mkdir", "fclose", "opendir"]), PATH),
    st.tuples(st.just("ftruncate"), PATH, SIZE),
    st.tuples(st.just("rename"), PATH, PATH),
    st.tuples(st.just("MPI_File_open"), st.just("MPI_COMM_WORLD"), PATH, st.just("5"), st.just("%p"), st.just("0-0")),
    st.tuples(
        st.sampled_from(["MPI_File_write_at", "MPI_File_write_at_all"]),
        st.just("0-0"), SIZE, st.just("%p"), SIZE, st.just("MPI_INT"), st.just("[0_0]"),
    ),
    st.tuples(st.just("H5Fcreate"), PATH, st.just("2"), st.just("0"), st.just("0")),
    st.tuples(st.just("H5Dwrite"), *[st.just(str(i)) for i in range(6)]),
    st.tuples(st.just("MPI_Barrier"), st.just("MPI_COMM_WORLD")),
)  # fmt: skip
FUNCTIONS = [
    "open", "fopen", "read", "write", "pread", "pwrite", "fwrite", "lseek", "unlink", "close", "mkdir", "fclose",
    "opendir", "ftruncate", "rename", "MPI_File_open", "MPI_File_write_at", "MPI_File_write_at_all", "MPI_Barrier",
    "H5Fcreate", "H5Dwrite",
]  # fmt: skip
LAYOUTS = ["2.3", "2.5p", "2.5g", "3.0", "3.x-dat", "3.x-dat2"]
MODULES = ["/bin/sim", "/lib/libmpi.so.40", "/lib/libhdf5.so.103", "/lib/libnetcdf.so.19", "/lib/libc.so.6"]
"""Each has one call site."""


@st.composite
def programs(draw) -> list[tuple[tuple[str, ...], int, int, int]]:
    """Calls in recorded order, with depth, thread and number of repetitions, including depths that no run has."""
    call = st.tuples(
        ONE, st.sampled_from([0, 0, 0, 1, 1, 2, 3]), st.sampled_from([0, 0, 9]), st.integers(1, 4)
    )
    return draw(st.lists(call, max_size=14))


@st.composite
def runs(draw) -> dict:
    """A trace: ranks that make the same or different calls, in any layout."""
    made = draw(st.lists(programs(), min_size=1, max_size=3))
    ranks = draw(st.lists(st.sampled_from(made), min_size=1, max_size=4))
    layout = draw(st.sampled_from(LAYOUTS))
    return {
        "ranks": ranks,
        "layout": layout,
        "interprocess": None if layout == "2.3" else draw(st.sampled_from([None, True, False])),
        "store_depth": draw(st.sampled_from([True, True, False])),
        # Ranks number their call sites in different orders.
        "modules": [draw(st.sampled_from([MODULES, MODULES[::-1], MODULES[:2]])) for _ in ranks],
        "start_unix": draw(st.sampled_from([1.7e9, 1.7e9 + 0.5])),
        "step": draw(st.integers(5, 50)),
    }


def written(run: dict, folder: Path) -> Path:
    settings_ = dict(run)
    step, modules = settings_.pop("step"), settings_.pop("modules")
    if run["layout"] == "3.x-dat2":
        settings_["call_sites"] = [encode_call_sites(m, [(i, 0) for i in range(len(m))]) for m in modules]
    ranks = []
    for program in settings_.pop("ranks"):
        calls: list[Call] = []
        for (name, *args), depth, thread, often in program:
            for _ in range(often):
                begin = 100 + step * len(calls)
                calls.append(Call(name, tuple(args), depth, thread, begin, begin + 4, site=(len(name) + depth) % 6))
        ranks.append(calls)
    write_trace(folder, ranks, functions=FUNCTIONS, **settings_)
    return folder


WORKLOADS = st.lists(runs(), min_size=1, max_size=3)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORKLOADS, st.booleans())
def test_quick_profile_agrees_on_generated_workloads(made, one_app):
    compare(made, one_app)


def test_names_in_turn_are_not_counted_without_the_order_of_calls(tmp_path):
    again = [(("open", "/s/a", "66", "420"), 0, 0, 2), (("unlink", "/s/a"), 0, 0, 1), (("open", "/s/a", "66", "420"), 0, 0, 1)]
    run = {"ranks": [again], "layout": "3.0", "interprocess": True, "store_depth": True, "modules": [MODULES]}
    quick, full = assert_equal(written({**run, "start_unix": 1.7e9, "step": 5}, tmp_path / "t"))
    assert ([f.generations for f in full.files], [f.generations for f in quick.files]) == ([2], [None])
    assert "order" in quick.provenance["files.generations"]


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORKLOADS, st.booleans())
def test_quick_profile_agrees_on_many_generated_workloads(made, one_app):
    compare(made, one_app)


def compare(made: list[dict], one_app: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traces = [
            written(run, Path(folder) / (f"app_{i}" if one_app else f"{'abc'[i]}"))
            for i, run in enumerate(made)
        ]
        sizes = {"/s/a": 77} if one_app else {}
        job = Job.model_validate(
            {
                "schema": "vani.job/1",
                "dataset": {"root": "/s", "files": [{"path": p, "size": n} for p, n in sizes.items()]},
                "mounts": [{"dir": "/s", "type": "lustre"}],
            }
        )
        try:
            assert_equal(*traces, without=REQUESTS, job=job)
        except InputError as error:
            assert "no rank can be read" in str(error)


@pytest.mark.parametrize("pattern", ["consecutive", "strided", "random", "mixed"])
@pytest.mark.parametrize("shared_grammar", [True, False])
@pytest.mark.sampled(3)
def test_generated_traces(tmp_path, pattern, shared_grammar):
    made = generate_trace(
        tmp_path / "t",
        Workload(
            calls=40_000, ranks=8, files=16, pattern=pattern, shared_grammar=shared_grammar, zlib_level=1
        ),
    )
    quick, _ = assert_equal(tmp_path / "t")
    # Counted by the generator, from its own rules.
    assert quick.traces[0].records == made.calls
    assert quick.traces[0].functions == {n: c for n, c in made.calls_by_function.items() if c}
    assert quick.workflow.io.bytes.read == made.bytes_read
    assert quick.workflow.io.bytes.written == made.bytes_written


# ---------------------------------------------------------------- what only a quick profile has to do


@pytest.mark.slow
def test_a_trace_without_time_stamps_is_counted(tmp_path):
    made = generate_trace(
        tmp_path / "t",
        Workload(calls=10**12, ranks=10_000, files=4, pattern="mixed", shared_grammar=True, times=False),
    )
    quick = vani.profile(tmp_path / "t", quick=True)
    assert quick.traces[0].records == made.calls
    assert quick.workflow.io.bytes.written == made.bytes_written
    assert quick.workflow.processes == 10_000
    assert [f.processes for f in quick.files] == [10_000] * 4


def test_the_busiest_process_is_found_without_its_time(tmp_path):
    def rank(blocks: int) -> list[Call]:
        return [Call("write", ("/s/a", "%p", "10"), 0, 0, i, i + 1) for i in range(blocks)]

    write_trace(tmp_path / "t", [rank(1), rank(3), rank(1), rank(0)], layout="3.0", functions=["write"])
    (app,) = vani.profile(tmp_path / "t", quick=True).apps
    assert app.balance is not None
    assert (app.balance.busiest_rank, app.balance.busiest_bytes) == (1, 30)
    assert (app.balance.mean_bytes, app.balance.writing_processes) == (50 / 4, 3)
    assert app.balance.slowest_rank is None


def test_files_with_most_bytes_are_listed(tmp_path):
    calls = [
        Call("write", (f"/s/{name}", "%p", size), 0, 0, i, i + 1)
        for i, (name, size) in enumerate([("small", "1"), ("large", "100"), ("b", "10"), ("a", "10")])
    ]
    write_trace(tmp_path / "t", [calls], layout="3.0", functions=["write"])
    quick = vani.profile(tmp_path / "t", quick=True, files=3)
    assert [f.path for f in quick.files] == ["/s/large", "/s/a", "/s/b"]
    assert quick.provenance["files"] == "the 3 files with most bytes of 4; --files all lists every one"
    assert vani.profile(tmp_path / "t", quick=True, files=0).files == []


@pytest.mark.parametrize("part", ["ug.cfg", "ug.mt"])
def test_damage_of_the_tables_is_reported_as_in_the_full_profile(tmp_path, part):
    trace = tmp_path / "t"
    shutil.copytree(DATA / "v3-posix-mix-4r", trace)
    content = (trace / part).read_bytes()
    # The last grammar is truncated; the last rank names a grammar that does not exist.
    (trace / part).write_bytes(
        content[:-5] if part == "ug.cfg" else content[:-8] + b"\x63\0\0\0" + content[-4:]
    )
    quick, full = assert_equal(trace)
    assert quick.traces[0].problems == full.traces[0].problems != []
    assert quick.traces[0].complete is False


def test_damaged_time_stamps_lose_no_call(tmp_path):
    trace = tmp_path / "t"
    shutil.copytree(DATA / "v3-posix-mix-4r", trace)
    whole = vani.profile(trace, quick=True)
    times = (trace / "recorder.ts").read_bytes()
    (trace / "recorder.ts").write_bytes(times[:-500])
    quick = vani.profile(trace, quick=True)
    assert quick.traces[0].records == whole.traces[0].records
    assert quick.workflow.io == whole.workflow.io
    # Its truncation shows without inflating it.
    assert [p for p in quick.traces[0].problems if "recorder.ts" in p]


def test_completeness_is_unknown_without_time_stamps():
    quick = vani.profile(DATA / "v3-posix-mix-4r", quick=True)
    assert quick.traces[0].problems == []
    assert quick.traces[0].complete is None
    assert quick.provenance["traces.complete"] == "--quick does not read time stamps"


def test_it_is_the_same_bytes_every_time():
    one, other = (vani.profile(DATA / "v3-cm1like-16r", quick=True).to_yaml() for _ in range(2))
    assert one == other


def test_a_quick_profile_is_read_back(tmp_path):
    quick = vani.profile(DATA / "v3-netcdf-pnetcdf-4r", quick=True)
    quick.save(tmp_path / "p.yaml")
    assert vani.Profile.load(tmp_path / "p.yaml").to_yaml() == quick.to_yaml()


def test_exchanges_are_unknown_if_too_many_to_keep(monkeypatch):
    monkeypatch.setattr(counts, "_MAX_USES", 0)
    quick = vani.profile(DATA / "v3-cm1like-16r", quick=True)
    assert quick.apps[0].process_dependencies is None
    assert quick.dataset.roles is None


def test_more_bytes_than_can_be_counted_are_refused(tmp_path):
    calls = [Call("write", ("/s/a", "%p", "9" * 16), 0, 0, i, i + 1) for i in range(1000)]
    write_trace(tmp_path / "t", [calls], layout="3.0", functions=["write"])
    with pytest.raises(InputError, match="its calls move 1e19 bytes"):
        vani.profile(tmp_path / "t", quick=True)


def test_a_difference_and_a_missing_reason_would_be_found():
    quick = vani.profile(DATA / "v3-cm1like-16r", quick=True)
    with tempfile.TemporaryDirectory() as store:
        full = vani.profile(DATA / "v3-cm1like-16r", store=store)
    wrong = quick.model_copy(update={"workflow": quick.workflow.model_copy(update={"processes": 17})})
    assert differences(wrong, full) == [("workflow.processes", 17, 16)]
    assert "phases" in without_reason(quick.model_copy(update={"provenance": {}}), full)


def test_a_trace_without_a_grammar_is_refused():
    parquet = next(p for p in sorted((DATA.parent / "parquet").iterdir()) if p.is_dir())
    with pytest.raises(InputError, match="has no grammar to count calls on; leave --quick out"):
        vani.profile(parquet, quick=True)


def test_phases_cannot_be_requested():
    with pytest.raises(InputError, match="quick profiles have no phases"):
        vani.profile(DATA / "v3-cm1like-16r", quick=True, phase_gap=1.0)
