"""Times of the traced disk do not choose the rule: the first advice stays if its calls get faster or slower."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import vani
from benchmarks.first_advice import CASES, MACHINE, unpacked
from tests.strace_durations import kind_of, rescaled

BY_DAY = ("lmdb-samples-strace.tgz", "dataloader-strace.tgz", "trunc-strace.tgz")
# Whether a tenth of the run writes (POS004), or half of the I/O flushes large files (POS010), is a matter of time.
DECIDED_BY_TIME = {"mpcheckpoint-strace.tgz", "mpcheckpoint-after-strace.tgz", "hdf5-flush-strace.tgz"}
TRACES = [
    pytest.param(name, marks=() if name in BY_DAY else pytest.mark.slow)
    for name in sorted(path.name for path in CASES.glob("*-strace*"))
]


def first(trace, store):
    advice = vani.advise(vani.profile(trace, store=store), system=MACHINE)
    given = (entry.rule for entry in advice.recommendations if entry.severity != "info" and entry.rule != "MAT001")
    return next(given, None)


@pytest.mark.parametrize("name", TRACES)
def test_first_advice_does_not_depend_on_the_speed_of_the_storage(name, tmp_path):
    trace = unpacked(CASES / name, tmp_path)
    found = Counter([first(trace, tmp_path / "store")])
    for seed in range(6):
        rescaled(trace, tmp_path / f"seed{seed}", seed)
        found[first(tmp_path / f"seed{seed}", tmp_path / f"store{seed}")] += 1
    assert len(found) == 1 or name in DECIDED_BY_TIME, found


def test_a_rescaled_trace_has_the_same_calls_and_other_times(tmp_path):
    trace = tmp_path / "trace"
    trace.mkdir()
    calls = ['7 10.000000 openat(AT_FDCWD, "f", O_RDONLY) = 3 <0.000100>', '7 10.500000 read(3, ""..., 9) = 9 <0.002000>']
    (trace / "rank-00000@n.strace").write_text("\n".join(calls) + "\n")
    rescaled(trace, tmp_path / "other", 1)
    lines = (tmp_path / "other" / "rank-00000@n.strace").read_text().splitlines()
    begins, takes = ([float(re.search(pattern, line)[1]) for line in lines] for pattern in (r"7 (\S+)", r"<(.*)>"))
    assert [re.sub(r"^\S+ \S+|<.*>", "", line) for line in lines] == [re.sub(r"^\S+ \S+|<.*>", "", c) for c in calls]
    # The program computes for as long as before.
    assert begins[1] - begins[0] - takes[0] == pytest.approx(0.4999, abs=2e-6)
    assert takes[0] != 0.0001
    assert 0.00066 / 4 < takes[1] < 0.006 * 4


def test_waiting_for_a_process_has_no_speed_of_the_storage():
    assert [kind_of(name) for name in ("wait4", "futex", "fdatasync", "pread64", "openat")] == [
        None, None, "sync", "read", "metadata",
    ]  # fmt: skip


@pytest.mark.skipif(not TRACES, reason="the shared cases are not here")
def test_the_page_has_the_number_of_traces():
    page = " ".join((Path(__file__).parents[2] / "docs" / "accuracy.md").read_text().split())
    assert f"stays on {len(TRACES) - len(DECIDED_BY_TIME)} of {len(TRACES)} traces of strace" in page
