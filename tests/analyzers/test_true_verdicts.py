"""True verdicts: blind spots are named, all texts are consistent, and no figure in them is impossible.

Profiles of bundled traces, of invented workloads, and of `../shared/cases`: small real inputs with the right
answers in their README.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
import yaml
from call_tables import invented_traces, profile_of
from hypothesis import HealthCheck, given, settings
from invented import examples
from one_story import advice_of, check_story, texts_of

import vani
from vani.errors import InputError, TraceError
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
CASES = ROOT.parent / "shared" / "cases"
has_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")

BLIND = {
    "fstream-recorder": {"stream_buffered": 9},
    "uring-recorder": {"written_without_writes": 4},
    "loader-recorder": {"forked_processes": 1, "written_without_writes": 2},
    "two-recorder": {"several_launches": 2},
}
"""Runs whose tracer missed important activity: its kinds, and the number of files or processes."""


def profile_of_case(name: str, folder: Path) -> Profile:
    source = CASES / name
    if name.endswith(".tgz"):
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        source = folder / name.removesuffix(".tgz")
    elif name.endswith(".gz"):
        source = folder / name.removesuffix(".gz")
        source.write_bytes(gzip.decompress((CASES / name).read_bytes()))
    return vani.profile(source, store=folder / "store")


def shared_cases() -> list[str]:
    return sorted(
        path.name
        for path in (CASES.iterdir() if CASES.is_dir() else ())
        if path.name.endswith(("-recorder", "-strace", ".tgz", ".darshan", ".txt", ".gz"))
    )


@has_cases
@pytest.mark.parametrize("name", BLIND)
def test_verdict_is_open_if_the_tracer_missed_activity(name, tmp_path):
    profile = profile_of_case(name, tmp_path)
    assert {entry.kind: entry.count for entry in profile.unseen} == BLIND[name]
    assert profile.verdict.matters == "open" and profile.verdict.share is None
    assert profile.verdict.sentence.endswith(": the verdict is open.")
    assert all(entry.cause and entry.see_with for entry in profile.unseen)
    advice = advice_of(profile)
    texts = texts_of(profile, advice, tmp_path)
    check_story(profile, advice, texts)
    for entry in profile.unseen:
        assert all(" ".join(entry.cause.split()) in texts[name] for name in ("screen", "report", "page"))


@pytest.mark.slow
@has_cases
def test_history_of_partly_recorded_runs_is_not_an_all_clear(tmp_path):
    def history(*arguments: str) -> str:
        command = [sys.executable, "-m", "vani", "history", *arguments, "--database", "history.sqlite"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    history("add", *(str(CASES / name) for name in BLIND))
    ranking = history("top")
    assert ranking.count("trace it again") == len(BLIND) and "nothing to do" not in ranking.lower()
    story = history("show", "fstream-recorder")
    assert "the verdict is open" in story and "nothing to do" not in story.lower()


@has_cases
def test_time_in_a_library_with_missing_calls_is_a_lower_bound(tmp_path):
    profile = profile_of_case("ior_mpiio-recorder", tmp_path)
    assert [(entry.kind, entry.count) for entry in profile.unseen] == [("mpiio_calls_missing", 512)]
    assert (profile.verdict.matters, profile.verdict.is_lower_bound) == ("yes", True)
    assert "is inside MPI-IO calls for at least 8.9 % of the run" in " ".join(profile.summary().split())
    assert advice_of(profile).recommendations[0].expected is None


PARTLY_SEEN = {
    # np.fromfile of one file, and 20 mapped ones; np.save writes the arrays with fwrite.
    "pympi-recorder": {("read_without_reads", 21, None), ("written_without_writes", 20, 40_000_000)},
    "ompvind-recorder": {("calls_below_missing", 32, 67_108_864), ("calls_below_missing", 4, 8_388_608)},
    "nbio-recorder": {("calls_below_missing", 120, 62_914_560)},
    "iwa-recorder": {("calls_below_missing", 16, 16_777_216)},
    "scorep-mixed-linktime.tgz": {("calls_below_missing", 24, 6_291_456), ("calls_below_missing", 16, 1_048_576)},
}
"""Kinds, numbers of files or calls, and bytes of unseen activity, from the programs and what they print."""


@has_cases
@pytest.mark.parametrize("name", PARTLY_SEEN)
def test_bytes_that_no_recorded_call_moved_are_those_of_the_program(name, tmp_path):
    profile = profile_of_case(name, tmp_path)
    assert {(entry.kind, entry.count, entry.bytes) for entry in profile.unseen} == PARTLY_SEEN[name]
    # Reads of files whose last writes are unseen did return data.
    assert not profile.workflow.io.past_end.read
    if name.startswith("scorep"):
        assert (profile.workflow.files.total, profile.dataset.files) == (6, 6)
    else:
        assert all("vani trace --tracer strace" in entry.see_with for entry in profile.unseen)


COMPLETE = (
    *("wa-recorder", "mdtest-recorder", "rank0-recorder", "applog-recorder", "sq-recorder", "scorep-mixed.tgz"),
    # Sieving, compression, a chunk cache, aggregators, two-phase writes, filling and overwriting are ratios.
    *("indep-recorder", "h5gzip-recorder", "h5cache-recorder", "h5sub-recorder", "aggr-recorder", "pnc-recorder"),
    *("mpiind-view-recorder", "chunkfill-strace.tgz", "trunc-strace.tgz", "netcdf_redef-strace.tgz"),
)


@has_cases
@pytest.mark.parametrize("name", COMPLETE)
def test_complete_record_has_no_unseen_activity(name, tmp_path):
    assert profile_of_case(name, tmp_path).unseen == []


@has_cases
@pytest.mark.parametrize("name", shared_cases())
@pytest.mark.sampled(13)
def test_texts_about_a_case_are_consistent(name, tmp_path):
    try:
        profile = profile_of_case(name, tmp_path)
    except InputError as error:
        assert "\n" not in str(error)
        return
    advice = advice_of(profile)
    check_story(profile, advice, texts_of(profile, advice, tmp_path))


@pytest.mark.parametrize("name", sorted(path.name for path in TRACES.iterdir() if path.is_dir()))
@pytest.mark.sampled(8)
def test_texts_about_a_bundled_trace_are_consistent(name, tmp_path):
    try:
        profile = vani.profile(TRACES / name, store=tmp_path / "store")
    except TraceError as error:
        assert "is what an aborted run leaves" in str(error)
        return
    advice = advice_of(profile)
    check_story(profile, advice, texts_of(profile, advice, tmp_path))


@given(invented_traces())
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_an_invented_workload_tells_one_story(traces):
    with tempfile.TemporaryDirectory() as folder:
        profile = profile_of(traces, Path(folder), gap_s=0.02)
        advice = advice_of(profile)
        check_story(profile, advice, texts_of(profile, advice, Path(folder)))


def test_a_verdict_is_text_in_yaml(tmp_path):
    """Unquoted `yes` and `no` are booleans in YAML 1.1."""
    profile = vani.profile(TRACES / "v3-cm1like-16r", store=tmp_path)
    assert yaml.safe_load(profile.to_yaml())["verdict"]["matters"] == "no"
