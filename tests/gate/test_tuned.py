"""A run is compared with a setting proven by `vani tune`: its time, its layout, its hints."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from tests.advisors import builders
from vani.errors import InputError
from vani.schema.tuned import Candidate, Result, RunIO, Setting, Tuned, TunedRun

SETTING = Setting(layout="-c 8 -S 4M", hints={"cb_nodes": "8"}, environment={"TMPDIR": "/l"})


def tuned(setting: Setting = SETTING, verdict: str = "proven", **more: object) -> Tuned:
    return Tuned(
        version="1", begun="2026-03-03T08:00:00+00:00", host="n1", command=["a"], data="/lustre/me", fresh="subfolder",
        **{"application": "ior", "processes": 64, "nodes": 2, **more},
        candidates=[Candidate(rule="R", name="r", reason="", expected=None, setting=setting)],
        runs=[
            TunedRun(number=number, candidates=candidates, folder="f", seconds=seconds, outcome="ended")
            for number, (candidates, seconds) in enumerate([([], 98.4), ([0], 66.2), ([], 99.1), ([0], 66.9)], 1)
        ],
        result=Result(verdict=verdict, why="", candidates=[0], speedup=1.48, low=1.45, high=1.51, noise=0.01),
    )  # fmt: skip


def profile(runtime_s: float = 67.0, *, stripes: int | None = 8, hints: dict[str, str] | None = None, **more: object):
    file = builders.file("/lustre/me/out", processes=64, written=1 << 30, transfer=1 << 20, time_s=10, busy_s=1)
    made = builders.profile(
        [file], runtime_s=runtime_s, slowest_s=5.0, busy_s=6.0, interfaces=[{"layer": "mpiio"}],
        **{"processes": 64, "nodes": 2, **more},
    )  # fmt: skip
    files = [made.files[0].model_copy(update={"stripe_count": stripes, "stripe_size": stripes and 4 << 20})]
    interfaces = [made.interfaces[0].model_copy(update={"hints": hints})]
    return made.model_copy(update={"files": files, "interfaces": interfaces})


def judged(tmp_path: Path, of=None, document: Tuned | None = None) -> dict[str, tuple[str, str]]:
    (document or tuned()).save(tmp_path / "tuned.yaml")
    verdict = vani.check(of or profile(), tuned=tmp_path / "tuned.yaml", search=False)
    return {entry.check: (entry.status, entry.message) for entry in verdict.judgements}


def test_run_with_tuned_speed_and_layout_passes(tmp_path):
    (status, text), layout = (judged(tmp_path)[f"tuned.{name}"] for name in ("time", "layout"))
    assert (status, text) == ("pass", "the run took 67 s; tuned runs took 66.2 s to 66.9 s, and up to 68.9 s is noise")
    assert layout == ("pass", "the file that was written is stored with -c 8 -S 4M")


@pytest.mark.parametrize(("seconds", "status"), [(68.9, "pass"), (68.91, "fail"), (98.0, "fail"), (1.0, "pass")])
def test_run_beyond_three_times_the_noise_of_tuned_runs_fails(tmp_path, seconds, status):
    seen, text = judged(tmp_path, profile(seconds))["tuned.time"]
    assert seen == status
    assert ("(before tuning: 98.4 s to 99.1 s)" in text) is (status == "fail")


def test_file_with_another_layout_fails(tmp_path):
    assert judged(tmp_path, profile(stripes=1))["tuned.layout"] == (
        "fail", "/lustre/me/out is on 1 target in stripes of 4.19 MB, and -c 8 -S 4M was tuned"
    )  # fmt: skip


@pytest.mark.parametrize(("size", "status"), [(4 << 20, "pass"), (64 << 20, "fail")])
def test_layout_on_cephfs_is_compared_with_its_object_size(tmp_path, size, status):
    setting = Setting(layout="setfattr -n ceph.dir.layout -v 'stripe_unit=4194304 stripe_count=8 object_size=4194304'")
    made = profile()
    file = made.files[0].model_copy(update={"object_size": size})
    run = made.model_copy(update={"files": [file]})
    assert judged(tmp_path, run, tuned(setting))["tuned.layout"][0] == status
    assert setting.label == "stripe_unit=4M stripe_count=8 object_size=4M"


def test_hint_set_by_the_program_takes_precedence_and_fails_the_check(tmp_path):
    assert judged(tmp_path, profile(hints={"cb_nodes": "8"}))["tuned.hints.cb_nodes"][0] == "pass"
    assert judged(tmp_path, profile(hints={"cb_nodes": "2"}))["tuned.hints.cb_nodes"] == (
        "fail", "the program sets the hint cb_nodes to 2 itself, and 8 was tuned"
    )  # fmt: skip


def test_check_of_a_missing_figure_is_reported_without_failing(tmp_path):
    seen = judged(tmp_path, profile(stripes=None))
    assert {name: status for name, (status, _) in seen.items()} == {
        "tuned.time": "pass", "tuned.layout": "unknown", "tuned.hints": "unknown", "tuned.environment": "unknown"
    }  # fmt: skip
    for end in ("-E", "--component-end"):
        layout = f"{end} 1G -c 1 {end} -1 -c 8"
        assert judged(tmp_path, document=tuned(Setting(layout=layout)))["tuned.layout"][0] == "unknown"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"application": 'my "own" app'}, 'this run is of ior, and my "own" app was tuned'),
        ({"processes": 128}, "this run has 64 processes, and 128 were tuned"),
        ({"nodes": 4}, "this run has 2 nodes, and 4 were tuned"),
    ],
)
def test_times_of_other_runs_are_not_compared(tmp_path, changes, why):
    assert judged(tmp_path, profile(1000.0), tuned(**changes))["tuned.time"] == ("unknown", why)


def test_incomparable_runs_are_not_checked(tmp_path):
    with pytest.raises(InputError, match=r"nothing to check: the result of the only check is unknown .*this run has 64 processes"):
        judged(tmp_path, document=tuned(Setting(), processes=8, application=None))


@pytest.mark.parametrize(
    ("document", "why"),
    [(tuned(verdict="not_proven"), "proved no setting"), (tuned().model_copy(update={"result": None}), "proved no setting")],
)
def test_a_session_without_a_proof_is_refused(tmp_path, document, why):
    with pytest.raises(InputError, match=why):
        judged(tmp_path, document=document)


@pytest.mark.parametrize("text", ["", "schema: vani.advice/3\n", "schema: vani.tuned/1\nresult: 3\n"])
def test_a_broken_document_is_refused(tmp_path, text):
    (tmp_path / "tuned.yaml").write_text(text)
    with pytest.raises(InputError, match=r"tuned\.yaml"):
        vani.check(profile(), tuned=tmp_path / "tuned.yaml", search=False)


def with_io(document: Tuned, source: str = "recorder") -> Tuned:
    """The I/O of each run takes 30 s less than the run."""
    io = RunIO(source=source, read_s=0, write_s=1, metadata_s=0, most_s=None)
    runs = [run.model_copy(update={"io_s": run.seconds - 30, "io": io}) for run in document.runs]
    return document.model_copy(update={"runs": runs})


def test_io_time_is_compared_only_if_measured_by_the_same_tool(tmp_path):
    # I/O of 6 s, where tuned runs had 36.2 s and 36.9 s; the run itself took longer than they did.
    seen = judged(tmp_path, profile(98.0, functions={"write": 1}), with_io(tuned()))
    assert seen["tuned.io_time"][0] == "pass"
    assert "I/O of the run took 6 s; tuned runs took 36.2 s to 36.9 s, and up to 38.1 s is noise" in seen["tuned.io_time"][1]
    assert "tuned.time" not in seen
    slow = with_io(tuned())
    slow = slow.model_copy(update={"runs": [run.model_copy(update={"io_s": run.io_s / 20}) for run in slow.runs]})
    assert judged(tmp_path, profile(functions={"write": 1}), slow)["tuned.io_time"][0] == "fail"
    assert "tuned.time" in judged(tmp_path, profile(functions={"write": 1}), with_io(tuned(), "darshan"))
