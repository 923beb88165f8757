"""A month of families without rules: users with gains rank first, and no letter contradicts the advice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydarshan import pydarshan_records

from tests.history.logs import assert_letters_follow_the_advice
from tests.traces.darshan_families import FAMILIES, MACHINE, SLOW_TARGET, family_logs
from tests.traces.darshan_month import generate_month
from vani import centre
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import read_records
from vani.readers.darshan.totals import target_times

GAIN = {family.app: family.gain for family in FAMILIES}


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)])
def history(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    (folder / "machine.yaml").write_text(MACHINE)
    generate_month(folder / "logs", 70, seed=request.param, damaged=0, copied=0, runs=family_logs)
    system = folder / "machine.yaml"
    centre.history_add(folder / "logs", db=folder / "h.sqlite", totals=True, workers=1, judge=20, system=system)
    return folder / "h.sqlite"


@pytest.mark.slow
def test_users_with_gains_rank_before_those_without(history):
    rows = centre.history_top(db=history, by="app").rows
    assert {row.application for row in rows} == set(GAIN)
    gains = [GAIN[row.application] for row in rows]
    assert [gain > 0 for gain in gains] == sorted((gain > 0 for gain in gains), reverse=True)
    for row, gain in zip(rows, gains, strict=True):
        assert (row.saved.expected_s or 0.0) <= row.waiting_s * gain * 1.05, row
        assert (row.saved.state == "saves" or row.saved.severity > 0) is (gain > 0)
        assert not row.saved.typical_machine


@pytest.mark.slow
def test_healthy_families_rank_last_on_an_unknown_machine_too(history, tmp_path):
    centre.history_add(history.parent / "logs", db=tmp_path / "h.sqlite", totals=True, workers=1, judge=12)
    rows = [row for row in centre.history_top(db=tmp_path / "h.sqlite").rows if row.saved is not None]
    gains = [GAIN[row.application] > 0 for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert {row.saved.severity for row, is_ill in zip(rows, gains, strict=True) if not is_ill} == {0}


@pytest.mark.slow
def test_no_letter_contradicts_the_advice_on_a_log(history):
    assert_letters_follow_the_advice(history, history.parent / "machine.yaml")


@pytest.mark.slow
def test_slow_target_is_listed_first_and_alone(history):
    first, *others = centre.history_targets(db=history)
    assert (first.mount, first.target, first.slow) == ("/scratch", SLOW_TARGET, True)
    assert first.times == pytest.approx(25, rel=0.1)
    assert len(others) == 39
    assert not any(row.slow for row in others)
    assert centre.history_targets(db=history, since="2027-01") == []


def test_targets_are_carried_to_another_database(history, tmp_path):
    centre.history_export(tmp_path / "h.jsonl.gz", db=history)
    centre.history_import(tmp_path / "h.jsonl.gz", db=tmp_path / "copy.sqlite")
    assert centre.history_targets(db=tmp_path / "copy.sqlite") == centre.history_targets(db=history)


def test_the_records_of_a_profile_name_the_same_targets(history):
    path = next((history.parent / "logs").rglob("*_scatter_*"))
    times = target_times(read_records(open_log(path), for_sums=True), "/scratch")
    assert times is not None
    assert target_times(read_records(open_log(path)), "/scratch") == times


def test_a_text_of_darshan_parser_counts_for_targets(tmp_path):
    for job in (1, 2):
        text = f"# darshan log version: 3.41\n# exe: /opt/a\n# jobid: {job}\n# start_time: 1725936007\n# nprocs: 4\n"
        text += "# run time: 60\n# mount entry:\t/lustre\tlustre\n"
        seconds = {5: 40.0 if job == 2 else 8.0}
        rows = [("POSIX", "POSIX_OPENS", 1), ("POSIX", "POSIX_WRITES", 9), ("POSIX", "POSIX_BYTES_WRITTEN", 9000)]
        for file in range(6):
            for module, name, value in [
                *rows, ("POSIX", "POSIX_F_WRITE_TIME", seconds.get(file, 1.0)), ("LUSTRE", "LUSTRE_OST_ID_0", file),
                ("LUSTRE", "LUSTRE_STRIPE_SIZE", 1048576), ("LUSTRE", "LUSTRE_STRIPE_WIDTH", 1),
            ]:  # fmt: skip
                text += f"{module}\t-1\t{file + 1}\t{name}\t{value}\t/lustre/{file}\t/lustre\tlustre\n"
        (tmp_path / f"{job}.txt").write_text(text)
    added = centre.history_add(tmp_path, db=tmp_path / "h.sqlite", judge=0)
    assert added.added.runs == 2
    first = centre.history_targets(db=tmp_path / "h.sqlite")[0]
    assert (first.target, first.lost_s, first.jobs) == (5, 46.0, ["2", "1"])
    own = centre.history_targets(db=tmp_path / "h.sqlite", job="1")[0]
    assert (own.target, own.lost_s) == (5, 7.0)


def test_targets_of_files_agree_with_pydarshan(history):
    pytest.importorskip("darshan", reason="PyDarshan is not installed")
    path = next((history.parent / "logs").rglob("*_checkpointer_*"))
    pairs = [
        set(zip(records.targets["id"].tolist(), records.targets["target"].tolist(), strict=True))
        for records in (pydarshan_records(path), read_records(open_log(path)))
    ]
    assert pairs[0] == pairs[1]
