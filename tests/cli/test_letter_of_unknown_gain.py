"""A letter agrees with the advice, also if no number gives the gain, and never promises more than the waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from traces.darshan_writer import POSIX, Layout, Log, Record, log_bytes

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"



def letter_of(run, log: Path, application: str, user: str) -> str:
    run("history", "add", log, "--system", "generic-lustre", "--database", "h.sqlite", "-q")
    return run("history", "letter", application, user, "--database", "h.sqlite").out


def test_advice_without_a_number_is_in_the_letter_and_the_ranking(run, desk):
    # 4 KiB at random places of a file on four targets, 40 % of the run.
    values = {
        "OPENS": 8, "READS": 800_000, "BYTES_READ": 800_000 * 4096, "MAX_BYTE_READ": 1 << 40, "SEQ_READS": 400_000,
        "SIZE_READ_1K_10K": 800_000, "ACCESS1_ACCESS": 4096, "ACCESS1_COUNT": 800_000, "F_READ_TIME": 3200.0,
        "F_SLOWEST_RANK_TIME": 400.0, "F_OPEN_START_TIMESTAMP": 1.0, "F_READ_START_TIMESTAMP": 2.0,
        "F_READ_END_TIMESTAMP": 900.0, "F_CLOSE_END_TIMESTAMP": 901.0,
    }  # fmt: skip
    path = "/scratch/train.bin"
    log = Log(
        exe="/opt/mltrain",
        processes=8,
        start_s=1_700_000_000,
        runtime_s=1000.0,
        uid=7,
        records=[Record(POSIX, path, -1, values)],
        layouts=[Layout(path, 4, 1 << 20)],
    )
    (desk / "a.darshan").write_bytes(log_bytes(log))
    letter = letter_of(run, desk / "a.darshan", "mltrain", "7")
    assert "nothing needs to be changed" not in letter
    assert "The possible saving is not known" in letter
    assert "vani explain POS005" in letter
    top = run("history", "top", "--database", "h.sqlite").out
    assert "not known" in top
    assert "(POS005)" in top


@pytest.mark.parametrize(
    ("case", "application", "user", "rule"),
    [
        ("heat3d-one-stripe", "heat3d", "20002", "LUS002"),
        ("mltrain-random-4k", "mltrain", "20003", "POS005"),
        ("mdscan-metadata", "mdscan", "20001", "POS003"),
    ],
)
def test_letters_on_generated_logs_follow_the_advice(run, desk, case, application, user, rule):
    log = CASES / f"{case}.darshan"
    if not log.is_file():
        pytest.skip(f"{log.name} is not here")
    letter = letter_of(run, log, application, user)
    assert "nothing needs to be changed" not in letter
    assert f"vani explain {rule}" in letter
    (row,) = json.loads(run("history", "top", "--database", "h.sqlite", "--format", "json").out)["rows"]
    # Necessary opens and reads remain.
    if row["saved"]["state"] == "gain_unknown":
        assert [row["saved"][name] for name in ("low_s", "expected_s", "high_s")] == [None] * 3
    else:
        assert row["saved"]["expected_s"] < row["waiting_s"]
        assert row["saved"]["high_s"] <= row["waiting_s"]
