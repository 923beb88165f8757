"""Saved measurements serve other options; untrusted or outdated ones are measured again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import vani
from vani.errors import SelfCheckError, TraceError
from vani.schema.document import loads
from vani.schema.job import Job
from vani.schema.profile import Profile
from vani.store import partial_results, write
from vani.store.partial_results import PartialResults

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
TRACE, OTHER = TRACES / "v3-cm1like-16r", TRACES / "v3-posix-mix-4r"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache that stores results of any number of calls."""
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VANI_PARTIAL_RESULTS")
    monkeypatch.setattr(partial_results, "FEWEST_CALLS", 0)
    return tmp_path / "cache"


@pytest.fixture
def decoded(monkeypatch) -> list[range]:
    """The ranks that were decoded."""
    found: list[range] = []
    real = write.decode_part

    def noted(task, reader):
        found.append(task.ranks)
        return real(task, reader)

    monkeypatch.setattr(write, "decode_part", noted)
    return found


def fresh(monkeypatch, *traces, **options) -> str:
    with monkeypatch.context() as now:
        now.setenv("VANI_PARTIAL_RESULTS", "0")
        return vani.profile(*traces, **options).to_yaml()


def files(cache) -> list[Path]:
    return sorted((cache / "results").glob("*"))


@pytest.mark.parametrize(
    "options",
    [{}, {"phase_gap": 0.5}, {"files": None}, {"system": "lassen"}],
    ids=["none", "a gap that cuts the same phases", "all files", "system"],
)
@pytest.mark.sampled(2)
def test_other_options_decode_nothing_and_equal_a_fresh_run(monkeypatch, decoded, options):
    first = vani.profile(OTHER)
    expected = fresh(monkeypatch, OTHER, **options)
    assert len(first.phases) == 1
    decoded.clear()
    assert vani.profile(OTHER, **options).to_yaml() == expected
    assert decoded == []


@pytest.mark.parametrize("options", [{"phase_gap": 1e-6}, {"files": 2}], ids=["other phases", "fewer files"])
def test_options_that_need_the_calls_get_them_once(monkeypatch, decoded, options):
    first = vani.profile(TRACE)
    expected = fresh(monkeypatch, TRACE, **options)
    decoded.clear()
    assert vani.profile(TRACE, **options).to_yaml() == expected
    assert decoded
    decoded.clear()
    assert vani.profile(TRACE, **options).to_yaml() == expected
    assert vani.profile(TRACE).to_yaml() == first.to_yaml()
    assert decoded == []


WHOLE = [
    path for path in sorted(TRACES.glob("*-*")) if not path.name.startswith(("v3-killed", "v3-truncated"))
]


@pytest.mark.parametrize("trace", WHOLE, ids=lambda path: path.name)
@pytest.mark.slow
def test_every_trace_gives_the_same_from_saved_results(monkeypatch, decoded, trace):
    first = vani.profile(trace).to_yaml()
    decoded.clear()
    assert vani.profile(trace).to_yaml() == first
    assert decoded == []


@pytest.mark.slow
def test_workload_is_known_completely(decoded):
    both = vani.profile(TRACE, OTHER).to_yaml()
    decoded.clear()
    assert vani.profile(TRACE, OTHER).to_yaml() == both
    assert decoded == []
    assert [trace.path for trace in vani.profile(OTHER, TRACE).traces] == [str(OTHER), str(TRACE)]
    assert decoded


def test_results_of_all_traces_are_not_used_for_some(monkeypatch):
    vani.profile(TRACE, OTHER)
    alone = fresh(monkeypatch, TRACE, phase_gap=1e-6)
    real = write.decode_part

    def failing(task, reader):
        if reader.path == OTHER:
            raise TraceError("cannot be read (Input/output error)", where=OTHER)
        return real(task, reader)

    monkeypatch.setattr(write, "decode_part", failing)
    found = vani.profile(TRACE, OTHER, phase_gap=1e-6)
    assert any("Input/output error" in why for why in found.provenance.values())
    without = {key: why for key, why in found.provenance.items() if str(OTHER) not in key}
    # Losses leave the verdict open.
    assert found.verdict.matters == "open"
    verdict = loads(alone, Profile).verdict
    assert found.model_copy(update={"provenance": without, "verdict": verdict}).to_yaml() == alone


def test_a_trace_that_changed_is_measured_again(tmp_path, decoded):
    trace = shutil.copytree(TRACE, tmp_path / "T")
    vani.profile(trace)
    decoded.clear()
    os.utime(next(trace.glob("*.cfg"), None) or next(path for path in trace.rglob("*") if path.is_file()))
    vani.profile(trace)
    assert decoded


def test_trace_with_another_name_is_reported_under_it(tmp_path):
    trace = shutil.copytree(TRACE, tmp_path / "T")
    vani.profile(trace)
    trace.rename(tmp_path / "moved")
    assert vani.profile(tmp_path / "moved").traces[0].path == str(tmp_path / "moved")


def test_other_sizes_of_the_data_set_measure_calls_again(monkeypatch, decoded):
    vani.profile(OTHER)
    sample = {"root": "/d", "files": [{"path": "in.dat", "size": 100}]}
    job = Job.model_validate({"schema": "vani.job/1", "dataset": sample})
    expected = fresh(monkeypatch, OTHER, job=job)
    decoded.clear()
    assert vani.profile(OTHER, job=job).to_yaml() == expected
    assert decoded


def test_traces_joined_by_job_yaml_are_measured_as_one_app(monkeypatch):
    job = Job.model_validate({"schema": "vani.job/1", "apps": {TRACE.name: "both", OTHER.name: "both"}})
    assert len(vani.profile(TRACE, OTHER).apps) == 2
    expected = fresh(monkeypatch, TRACE, OTHER, job=job)
    assert vani.profile(TRACE, OTHER, job=job).to_yaml() == expected


def test_results_of_other_code_are_measured_again(monkeypatch, decoded):
    vani.profile(TRACE)
    decoded.clear()
    monkeypatch.setattr(partial_results, "_state_of_code", lambda: "edited")
    vani.profile(TRACE)
    assert decoded


def test_digest_of_code_covers_all_its_files(monkeypatch, tmp_path):
    monkeypatch.setattr(partial_results, "_ROOT", tmp_path)
    for name in partial_results._CODE:
        (tmp_path / name).mkdir()
    state = partial_results._state_of_code.__wrapped__
    states = [state()]
    for name in ("calls.py", "kernels/one.so", "readers/recorder/deep/inner.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
        states.append(state())
        (tmp_path / name).write_text("22")
        states.append(state())
        os.utime(tmp_path / name, (1, 1))
        states.append(state())
    assert len(set(states)) == len(states)
    for name in ("readers/__pycache__/one.py", "schema/other.py", "kernels/one.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert state() == states[-1]


def test_results_of_few_calls_are_not_kept(cache, monkeypatch):
    monkeypatch.setattr(partial_results, "FEWEST_CALLS", 1 << 17)
    vani.profile(TRACE)
    assert not cache.exists()


def test_named_store_leaves_the_cache_empty(cache, tmp_path):
    vani.profile(TRACE, store=tmp_path / "s")
    assert not cache.exists()


def test_it_can_be_switched_off(cache, monkeypatch, decoded):
    vani.profile(TRACE)
    before = [path.stat().st_mtime_ns for path in files(cache)]
    decoded.clear()
    fresh(monkeypatch, TRACE, files=1)
    assert decoded
    assert [path.stat().st_mtime_ns for path in files(cache)] == before


def test_plug_ins_disable_saved_results(cache, monkeypatch, decoded):
    vani.profile(TRACE)
    decoded.clear()
    monkeypatch.setattr(partial_results, "_has_plugins", lambda: True)
    vani.profile(TRACE)
    assert decoded


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def cut(path: Path, to: int) -> None:
    path.write_bytes(path.read_bytes()[:to])


def forge(path: Path) -> None:
    """A valid file that requests a class that is not Vani's."""
    tree = {"object": ["subprocess", "Popen"], "fields": {"args": "false"}}
    with path.open("wb") as file:
        np.savez(file, np.frombuffer(json.dumps(tree).encode(), np.uint8))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: flip(path, 3),
        lambda path: flip(path, 60),
        lambda path: flip(path, path.stat().st_size // 2),
        lambda path: cut(path, 0),
        lambda path: cut(path, 40),
        lambda path: cut(path, 2000),
        forge,
        lambda path: path.chmod(0o666),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.unlink(), path.symlink_to("nowhere")),
    ],
    ids=[
        "magic",
        "text",
        "array",
        "empty",
        "short",
        "cut",
        "forged",
        "writable by others",
        "a folder",
        "a pipe",
        "a link",
    ],
)
@pytest.mark.sampled(4)
def test_implausible_results_are_measured_again(cache, decoded, damage):
    expected = vani.profile(TRACE).to_yaml()
    (file,) = files(cache)
    damage(file)
    decoded.clear()
    assert vani.profile(TRACE).to_yaml() == expected
    assert decoded


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_results_of_another_user_are_not_believed(cache, decoded):
    vani.profile(TRACE)
    (file,) = files(cache)
    os.chown(file, 12345, -1)
    decoded.clear()
    vani.profile(TRACE)
    assert decoded


def test_unwritable_cache_is_ignored(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "file" / "cache"))
    assert vani.profile(TRACE) == vani.profile(TRACE)


def test_run_that_fails_at_its_end_leaves_no_results(cache, monkeypatch):
    def fails(*_args, **_named):
        raise SelfCheckError("wrong")

    with monkeypatch.context() as failing, pytest.raises(SelfCheckError):
        failing.setattr("vani.analyzers.characterise.assemble", fails)
        vani.profile(TRACE)
    assert files(cache) == []
    vani.profile(TRACE)
    assert [path.suffix for path in files(cache)] == [".bin"]


def test_least_recently_used_entry_is_removed_first(cache, monkeypatch):
    vani.profile(TRACE)
    (first,) = files(cache)
    os.utime(first, (0, 0))
    vani.profile(OTHER)
    assert len(files(cache)) == 2
    monkeypatch.setattr(partial_results, "MAX_BYTES", first.stat().st_size)
    vani.profile(TRACES / "v3-haccio-ssf-8r")
    assert first not in files(cache)


def test_old_options_are_dropped_and_shared_results_kept(cache):
    for number in range(20):
        known = PartialResults(["d" * 64], [])
        known.of("survey", [], lambda: "all")
        known.of("measure", [str(number)], lambda: number)  # noqa: B023 - called immediately
        known.keep([])
    again = PartialResults(["d" * 64], [])
    made = [again.of("measure", [str(number)], lambda: -1) for number in range(20)]
    assert made == [-1] * 5 + list(range(5, 20))
    assert again.of("survey", [], lambda: "none") == "all"


plain = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)


def array_of(dtype: str) -> st.SearchStrategy[np.ndarray]:
    elements: st.SearchStrategy[object] = st.floats(allow_nan=False) if dtype == "<f8" else st.booleans()
    if np.dtype(dtype).kind in "iu":
        least, most = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        elements = st.sampled_from([0, 1, least, most]) | st.integers(least, most)
    return st.lists(elements, max_size=5).map(lambda some: np.array(some, dtype))


numbers = st.sampled_from(["<i1", "<i8", "<u2", "<u4", "<u8", "<f8", "|b1"]).flatmap(array_of)
trees = st.recursive(
    plain | numbers,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
        )
    return type(one) is type(other) and one == other


def written(what: object) -> bytes:
    return partial_results._packed(what)


@given(trees)
def test_saved_results_are_read_back_unchanged(tree):
    assert same(tree, partial_results._read(written(tree)))


@given(numbers)
@example(np.array([0.5, 3]))
@example(np.arange(6.0)[::2])
@example(np.arange(6.0).reshape(2, 3).T)
@example(np.arange(6).reshape(2, 3).T)
@example(np.empty((0, 3)))
@example(np.array(2.5))
@example(np.array(2))
def test_arrays_are_of_the_same_type_again(array):
    assert same([array], partial_results._read(written([array])))


def test_arrays_are_aligned_for_kernels():
    arrays = [np.arange(3, dtype=np.int8), np.arange(6).reshape(2, 3)]
    found = partial_results._read(written(arrays))
    assert all(one.flags.aligned and one.flags.writeable for one in found)
    assert found[1].shape == (2, 3)


def test_small_numbers_take_few_bytes():
    small, large = (len(written([np.arange(1000) + base])) for base in (0, 1 << 40))
    assert large - small == 6 * 1000


def test_tables_come_back():
    table = pa.table({"path": ["a", "b"], "class": pa.array([0, 1], pa.int8())})
    assert partial_results._read(written([table]))[0] == table


def test_classes_of_other_modules_are_not_made():
    room = {"object": ["vani.store.stores", "MemoryBudget"], "fields": {"left": 1}}
    with pytest.raises(ValueError, match=r"vani\.store\.stores is not a module of Vani's results"):
        partial_results._value(room, [])


@pytest.mark.parametrize("what", [object(), np.array(["a"]), np.array([object()]), {1, 2}])
def test_non_numeric_results_are_not_written(what):
    with pytest.raises(TypeError):
        written(what)


def test_partly_known_results_are_completed(cache, monkeypatch):
    expected = fresh(monkeypatch, TRACE)
    vani.profile(TRACE)
    real = PartialResults.of

    def forgetful(self, name, about, make):
        return make() if name == "overlap" else real(self, name, about, make)

    monkeypatch.setattr(PartialResults, "of", forgetful)
    assert vani.profile(TRACE).to_yaml() == expected
