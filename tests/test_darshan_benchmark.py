"""Claims about Darshan logs, printed completely by `python -m benchmarks.darshan`, tested on some shared logs."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks import darshan

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("darshan") is None, reason="PyDarshan is not installed (vani-io[darshan])"
    ),
    pytest.mark.skipif(not darshan.TWINS.is_dir(), reason="the shared logs are not here"),
]
SOME = ["v3-ior-ssf-posix-8r", "v3-ior-fpp-posix-8r", "v3-haccio-fpp-8r", "v3-ior-ssf-random-4k-8r"]


@pytest.mark.parametrize("folder", ["release_logs", "dlio_logs", "stdio_no_posix", "empty_log"])
def test_totals_and_files_agree_with_pydarshans_own_sums(folder):
    logs = sorted((darshan.DATA / "darshan-logs" / folder).rglob("*.darshan"))[:2]
    assert logs
    assert [differ for log in logs for differ in darshan.differences(log)[1]] == []


def test_files_of_twins_agree_with_recorder():
    shares, _ = darshan.agreement(SOME, darshan.counted)
    assert {
        name: shares[name] for name in darshan.LEAST_AGREEMENT if shares[name] < darshan.LEAST_AGREEMENT[name]
    } == {}


def test_advice_on_twins_is_kept_with_its_values():
    for of in (darshan.counted, darshan.with_dxt):
        kept = darshan.advice_kept(SOME, of)
        # DXT names the host. Each node then moves more than more targets ever gained, and LUS002 is silent.
        assert kept.share(frozenset({"LUS002"})) >= 0.75
        # Counters do not give the distance between neighbouring writers, on which LUS002's stripe size
        # depends.
        assert kept.alike >= kept.kept.total() - kept.kept["LUS002"]


@pytest.mark.slow
def test_unknown_removals_are_omitted_without_contradiction():
    """Recorder saw mdtest remove its files, so they belong on the node. Counters do not show it."""
    kept = darshan.advice_kept(["v3-mdtest-shared-4r"], darshan.counted)
    assert kept.kept["FLD001"] == 1
    assert kept.left_out == 1
    assert kept.alike == kept.kept.total()


def test_labels_belong_to_runs_by_their_parameters():
    assert {path.name.split("_api_")[0] for path, _ in darshan.labelled()} == {"ior-easy", "ior-hard"}
    assert len(list(darshan.labelled())) == 4


@pytest.mark.slow
def test_the_tables_are_printed(capsys):
    for part in ("tuned", "labels"):
        darshan.PARTS[part]()
    printed = capsys.readouterr().out
    assert "First advice on runs before and after they were tuned" in printed
    assert "Labels of 4 runs (7 others have none)" in printed
