"""Totals in advice cover all files, although a profile lists a hundred."""

from __future__ import annotations

import re

import pytest
from traces.recorder_writer import Call, write_trace

import vani
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, SystemRef
from vani.systems import load_system

SESSIONS = {
    # Each file is read completely, twice.
    "inputs": [("open", 9), ("read", 1), ("close", 1)] * 2,
    "small_writes": [("open", 1), *[("write", 20)] * 6, ("close", 1)],
    "reopened": [("open", 9), ("write", 1), ("close", 1)] * 4,
    "flushed": [("open", 1), *[("write", 1), ("fsync", 30)] * 3, ("close", 1)],
}
ARGS = {"read": ("%p", "4000"), "write": ("%p", "100"), "fsync": (), "close": ()}
# Of files below 64 KiB, the names would cost more (FLD001).
ARGS[("small_writes", "write")] = ("%p", "12000")


def calls(kind, count):
    """Calls of one process on files in ten folders, one after the other."""
    now = 0
    for number in range(count):
        path = f"/lustre/d{number % 10}/part_{number:06d}.bin"
        for function, ticks in SESSIONS[kind]:
            flags = "0" if kind == "inputs" else "66"
            args = (flags, "436") if function == "open" else ARGS.get((kind, function), ARGS[function])
            yield Call(function, (path, *args), start=now, end=now + ticks)
            now += ticks + 1


def advice_on(kind, count, folder):
    write_trace(folder / "trace", [list(calls(kind, count))], layout="3.0", resolution=1e-4)
    profile = vani.profile(folder / "trace", scheduler="synchronous")
    (pattern,) = profile.patterns
    assert pattern.files == count == profile.dataset.files and len(profile.files) == min(count, 100)
    assert f"all {count:,} files" in profile.summary()
    advice = judge(
        profile,
        load_system("generic-lustre"),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
    )
    return pattern, {entry.rule: entry for entry in advice.recommendations}, advice


def numbers(text):
    return {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)}


def check(count, folder):
    pattern, rules, _ = advice_on("inputs", count, folder / "inputs")
    # Both pack the files; the one that saves more seconds remains.
    assert (rules.get("FLD003") or rules["FLD001"]).current["files"] == count
    assert pattern.opens == 2 * count
    assert rules["BB001"].recommended["bytes_per_node"] == 4000 * count
    assert rules["BB001"].target.path == "/lustre"
    assert count in numbers(rules["BB001"].reason)
    pattern, rules, _ = advice_on("small_writes", count, folder / "small_writes")
    assert rules["POS002"].current["requests"] == pattern.writes == 6 * count
    assert numbers(rules["POS002"].reason) >= {count, 6 * count}
    pattern, rules, _ = advice_on("reopened", count, folder / "reopened")
    assert rules["POS003"].current["opens"] == pattern.opens == 4 * count
    assert rules["POS003"].recommended["opens"] == count
    assert rules["FLD001"].current["files"] == count
    share = re.search(r"takes ([\d.]+) % of the I/O time", rules["FLD001"].reason)
    assert 0 < float(share[1]) <= 100
    pattern, rules, _ = advice_on("flushed", count, folder / "flushed")
    assert rules["POS010"].current["flushes_per_write"] == 1.0
    assert numbers(rules["POS010"].reason) >= {count, 3 * count}
    assert pattern.flushes == 3 * count


def test_rules_count_all_of_four_hundred_files(tmp_path):
    check(400, tmp_path)


@pytest.mark.slow
def test_rules_count_all_of_two_hundred_thousand_files(tmp_path):
    check(200_000, tmp_path)
