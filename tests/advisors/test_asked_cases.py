"""Advice on programs whose MPI-IO and HDF5 calls request less than they move (`../shared/cases/README.md`)."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from tests.advisors.shared_cases import unpacked

DATA = Path(__file__).resolve().parents[1] / "data/cases"
E2E = "dbin_write_3d_nc4_id66168155-29343_1-21-52011-13559133571516104128_1.darshan"
OPENPMD = "dbin_h5bench_openpmd_write_id66082102-11665_1-17-41968-4919217136106122637_1.darshan"
SHARED = Path(__file__).resolve().parents[3] / "shared/cases"


def recommended(name, folder):
    """Recommended or noted rules in order, with the sentence of each."""
    places = (DATA / name, SHARED / name, SHARED / f"{name}.tgz")
    place = unpacked(next((place for place in places if place.exists()), places[-1]), folder)
    advice = vani.advise(vani.profile(place), system="generic-lustre")
    return {one.rule: one.reason for one in advice.recommendations if one.rule != "MAT001"}


def test_collective_non_blocking_calls_need_no_advice(tmp_path):
    assert recommended("iwa-recorder", tmp_path) == {}


def test_independent_calls_in_a_view_become_collective(tmp_path):
    found = recommended("indep-recorder", tmp_path)
    assert next(iter(found)) == "MIO001"
    assert "requests 5.12 MB" in found["MIO001"]
    assert "4 times as much" in found["MIO001"]


def test_independent_calls_become_collective_where_the_requests_below_are_in_no_record(tmp_path):
    reasons = recommended("ompvind-recorder", tmp_path)
    assert next(iter(reasons)) == "MIO001"
    assert "36 independent calls in views" in reasons["MIO001"]


def test_a_file_that_several_processes_map_is_read_whole(tmp_path):
    assert next(iter(recommended("mapped-weights-strace", tmp_path))) == "POS005"


def test_what_one_collective_call_moves_counts_all_processes_that_make_it(tmp_path):
    found = recommended("../data/aiio-darshan/" + E2E, tmp_path)
    # 768 calls by 64 processes request 167,784,116 B, and one aggregator writes pieces of 256 B.
    assert next(iter(found)) == "MIO001" and "Only 1 of 64 processes write them, for all" in found["MIO001"]
    assert "less than a stripe" not in found["MIO001"] and "usually of 256 B, 853 for each call" in found["MIO001"]


def test_a_process_that_writes_fill_values_has_no_work_to_share_out(tmp_path):
    found = recommended("../data/aiio-darshan/" + OPENPMD, tmp_path)
    assert "Process 0 writes the fill values while the others wait" in found["HD5007"] and "POS006" not in found


def test_collective_calls_come_before_sieving_is_switched_off(tmp_path):
    found = recommended("ior-noncontig.txt", tmp_path)
    assert next(iter(found)) == "MIO001"
    assert "requests 1.92 GB" in found["MIO001"]
    assert "52 times as much" in found["MIO001"]


def test_small_requests_of_single_processes_are_buffered_for_any_source(tmp_path):
    assert next(iter(recommended("ior-mpiio-fpp-2k.txt.gz", tmp_path))) == "POS002"


@pytest.mark.parametrize("name", ["h5many-recorder", "daos-3.0-recorder"])
def test_small_data_of_hdf5_is_not_metadata(name, tmp_path):
    assert "HD5003" not in recommended(name, tmp_path)


def test_a_funnel_comes_before_hiding_its_writes(tmp_path):
    assert list(recommended("rank0-recorder", tmp_path))[:2] == ["POS004", "POS007"]


def test_a_funnel_of_workers_without_mpi(tmp_path):
    found = recommended("ds_ckpt-strace", tmp_path)
    assert next(iter(found)) == "POS004"
    assert "288 MB in 72 writes" in found["POS004"]


def test_single_stripe_leads_to_stripe_advice_not_aggregators(tmp_path):
    found = recommended("imbalanced-io.darshan", tmp_path)
    assert next(iter(found)) in ("LUS002", "PFL001")
    assert "MIO002" not in found


def test_chunks_that_are_decoded_again_need_a_larger_cache(tmp_path):
    found = recommended("h5gzip-recorder", tmp_path)
    assert next(iter(found)) == "HD5004" and "decodes them as often" in found["HD5004"]
    profile = vani.profile(SHARED / "h5gzip-recorder")
    assert profile.verdict.parts.library > 0.98 and profile.verdict.parts.storage < 0.01
    advice = vani.advise(profile, system="generic-lustre")
    (cure,) = [one for one in advice.recommendations if one.rule == "HD5004"]
    assert cure.severity == "medium" and "up to 11.6 s of 11.6 s" in cure.expected.why_no_number
    assert "H5Pset_chunk_cache" in str(cure.apply)
    assert "no setting" not in advice.to_yaml() and "a larger chunk cache avoids" in " ".join(profile.summary().split())
    assert recommended("h5gzip-after-recorder", tmp_path) == {}


@pytest.mark.parametrize("name", ["h5cache-recorder", "chunk-beyond-cache-strace"])
def test_rows_of_a_chunk_that_does_not_fit_the_cache_are_not_small_chunks(name, tmp_path):
    found = recommended(name, tmp_path)
    assert next(iter(found)) == "HD5004" and "larger chunks do not help" in found["HD5004"]
    assert not {"HD5002", "POS002"} & set(found)


def test_a_pattern_agrees_with_the_rule_about_fill_values(tmp_path):
    assert next(iter(recommended("chunkfill-strace", tmp_path))) == "HD5007"
    advice = vani.advise(vani.profile(tmp_path / "chunkfill-strace"), system="generic-lustre")
    assert [entry.pattern for entry in advice.diagnosis if "HD5007" in entry.rules] == ["rewritten"]
