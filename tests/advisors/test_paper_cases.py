"""The papers' own conclusions, from profiles written from their tables and from the traces of the same programs.

Profiles are in tests/data/profiles; each marks which figures are the paper's and which are ours. Rules are looked
up by name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.advisors.catalogue import find
from vani.advisors.judge import advise_document
from vani.errors import InputError
from vani.schema.advice import Advice, Recommendation
from vani.schema.profile import Profile
from vani.systems import load_system

ROOT = Path(__file__).resolve().parent.parent.parent
PROFILES = ROOT / "tests" / "data" / "profiles"
SHARED = ROOT.parent / "shared"


def advice_for(profile: Path | Profile, system: str = "lassen") -> Advice:
    return advise_document(profile, load_system(system))


def found(advice: Advice, name: str) -> list[Recommendation]:
    try:
        rule = find(name)
    except InputError:
        pytest.skip(f"there is not a rule {name} in the catalogue")
    return [one for one in advice.recommendations if one.rule == rule.id]


def only(advice: Advice, name: str) -> Recommendation:
    (one,) = found(advice, name)
    return one


def evidence(one: Recommendation) -> dict[str, object]:
    return {item.attribute: item.value for item in one.evidence}


def profile_of(folder: str, store: Path) -> Profile:
    """Characterise traces next to the repository."""
    path = SHARED / folder
    if not path.exists():
        pytest.skip(f"{folder} does not lie beside the repository")
    from vani.cli.profile import profile  # noqa: PLC0415 - the other tests need no traces

    return profile(path, store=store)


@pytest.fixture(scope="module")
def cosmoflow() -> Advice:
    return advice_for(PROFILES / "cosmoflow.yaml")


@pytest.fixture(scope="module")
def montage() -> Advice:
    return advice_for(PROFILES / "montage-mpi.yaml")


def test_cosmoflow_is_preloaded_into_memory_of_the_nodes(cosmoflow):
    # Section V-A: 1.5 TB / 32 nodes = 47 GB each, in 196 GB that the program leaves.
    one = only(cosmoflow, "stage-in")
    assert one.recommended["bytes_per_node"] == pytest.approx(47e9, rel=0.01)
    assert one.recommended["each_node_holds"] == "its part"
    assert one.recommended["directory"].startswith("/dev/shm/")
    assert evidence(one)["storage.node_local.capacity_per_node"] == 196_000_000_000
    assert evidence(one)["job.nodes"] == 32
    assert "98 % of their I/O time is metadata" in one.reason
    assert any(line.startswith("jsrun ") and "/dev/shm/2019_05_4parE" in line for line in one.apply)


def test_published_gain_of_preloading_is_mentioned_but_not_promised(cosmoflow):
    # Figure 7: 2.2 to 4.6 times as fast. The rates alone do not explain the run: its time is metadata.
    one = only(cosmoflow, "stage-in")
    assert "the model expects" in one.direction.why_no_number
    assert "2.2 to 4.6 times" in one.direction.why_no_number


@pytest.mark.parametrize("name", ["cosmoflow", "montage-mpi", "cm1", "hacc"])
def test_stripes_are_not_mentioned_on_gpfs(name):
    advice = advice_for(PROFILES / f"{name}.yaml")
    assert [one.rule for one in advice.recommendations if one.rule.startswith(("LUS", "PFL"))] == []
    assert not any("lfs " in line for one in advice.recommendations for line in one.apply)


def test_montage_keeps_its_intermediate_files_on_the_node(montage):
    # Section V-B: 95 % of the I/O time is on intermediate files, 800 MB of them per node.
    one = only(montage, "intermediate-files")
    assert one.recommended["bytes_per_node"] == pytest.approx(800e6, rel=0.01)
    assert one.recommended["directory"].startswith("/dev/shm/")
    assert len(one.recommended["files"]) == 80
    assert "95 % of its I/O time" in one.reason
    assert "on the node of its writer" in one.reason
    assert evidence(one)["files[0].role"] == "intermediate"


def test_published_gain_is_mentioned_but_not_promised(montage):
    # Figure 8: 3.9 to 8 times as fast. The rates alone do not explain the run: its requests are small.
    one = only(montage, "intermediate-files")
    assert "the model expects" in one.direction.why_no_number
    assert "3.9 to 8 times" in one.direction.why_no_number


def test_montage_apps_that_exchange_files_share_nodes(montage):
    one = only(montage, "co-locate")
    assert one.recommended["apps"] == ["mProject", "mImgtbl", "mAddMPI", "mShrink", "mViewer"]


def test_inputs_of_montage_are_not_staged_in(montage):
    assert found(montage, "stage-in") == []


def test_cm1_broadcasts_its_configuration():
    one = only(advice_for(PROFILES / "cm1.yaml"), "read-by-all")
    assert one.target.path == "/p/gpfs1/cm1/namelist.input"
    assert "files[0].readers" in evidence(one)


def test_cm1_writes_little_by_little_from_rank_0():
    assert found(advice_for(PROFILES / "cm1.yaml"), "rank-zero-funnel")


def test_hacc_opens_its_files_again_and_again():
    found_ones = found(advice_for(PROFILES / "hacc.yaml"), "redundant-opens")
    assert found_ones
    assert found_ones[0].evidence


@pytest.mark.parametrize("name", ["cosmoflow", "montage-mpi", "cm1", "hacc"])
def test_no_gain_exceeds_the_io_time(name):
    path = PROFILES / f"{name}.yaml"
    most = Profile.load(path).workflow.io.busy_s.total
    for one in advice_for(path).recommendations:
        if one.gain is not None:
            assert one.gain.before - one.gain.after <= most * (1 + 1e-9)


@pytest.fixture(scope="module")
def real_montage(tmp_path_factory) -> Advice:
    return advice_for(profile_of("traces/v3-workflow-montage", tmp_path_factory.mktemp("store")))


@pytest.mark.slow
def test_the_montage_trace_names_the_very_files(tmp_path):
    # Its file system was as fast as memory, so that judge leaves the finding out.
    (one,) = find("intermediate-files")().check(
        profile_of("traces/v3-workflow-montage", tmp_path), load_system("lassen")
    )
    top = "/lustre/scratch/proj/v3-workflow-montage"
    files = one.recommended["files"]
    for name in (
        "proj/p2mass-atlas-004.fits",
        "diff/diff.000002.000003.fits",
        "corr/p2mass-atlas-008_area.fits",
    ):
        assert f"{top}/{name}" in files
    # Inputs, results and by-products that nothing reads remain.
    assert not any(
        "/raw/2mass" in path or path.endswith(("mosaic.fits", "mosaic_area.fits", "mosaic_small.fits")) for path in files
    )
    for folder in ("proj", "diff", "corr"):
        assert any(
            line == f"to_node_v3_workflow_montage {top}/{folder} /dev/shm/v3-workflow-montage/{folder}"
            for line in one.apply
        )
    assert one.recommended["directory"] == "/dev/shm/v3-workflow-montage"


@pytest.mark.slow
def test_montage_trace_keeps_its_chain_in_execution_order(real_montage):
    assert only(real_montage, "co-locate").recommended["apps"] == [
        "mImgtbl",
        "mMakeHdr",
        "mProject",
        "mOverlaps",
        "mDiff",
        "mFitplane",
        "mFitExec",
        "mBgModel",
        "mBackground",
        "mAdd",
        "mShrink",
    ]


@pytest.mark.slow
def test_montage_trace_shows_the_app_that_gathers_many_outputs(real_montage):
    reason = only(real_montage, "co-locate").reason
    assert "mProject (9 runs)" in reason
    assert "mMakeHdr, mOverlaps, mFitExec, mBgModel, mAdd read what many runs wrote" in reason


@pytest.fixture(scope="module")
def real_cm1(tmp_path_factory) -> Advice:
    return advice_for(profile_of("traces-parquet/cm1-lassen", tmp_path_factory.mktemp("store")))


def test_cm1_trace_has_little_to_gain_and_names_the_configuration(real_cm1):
    assert "storage is not what this run waits for" in only(real_cm1, "io-share").reason
    assert {one.severity for one in real_cm1.recommendations} == {"info"}
    assert any("namelist.input" in one.target.path for one in found(real_cm1, "read-by-all"))


def test_cm1_trace_stages_nothing_and_keeps_nothing(real_cm1):
    assert found(real_cm1, "stage-in") == []
    assert found(real_cm1, "intermediate-files") == []
    # States of half a second every 111 s, in a run of 11 min that is restarted after a failure.
    assert found(real_cm1, "checkpoint-interval") == []


def test_the_cm1_trace_writes_from_rank_0(real_cm1):
    assert found(real_cm1, "rank-zero-funnel")
