"""Every kind of contradiction in a profile is detected and named by attribute."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from call_tables import MILLISECOND, InventedTrace, call, create, profile_of, read, write

from vani.analyzers.self_check import refuse_contradictions
from vani.calls import FileClass, Flag
from vani.errors import SelfCheckError
from vani.schema.profile import Profile


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, Any]:
    rows = []
    for rank in range(3):
        rows += [
            create(0, rank=rank, at=0),
            write(0, offset=rank * 4096, size=4096, rank=rank, at=MILLISECOND, lasts=MILLISECOND),
            read(0, offset=0, size=8192, rank=rank, at=500 * MILLISECOND, lasts=2 * MILLISECOND),
            read(1, offset=0, size=10, rank=rank, at=600 * MILLISECOND),
            call(file=2, flags=Flag.OPEN, rank=rank, at=900 * MILLISECOND),
        ]
    classes = [FileClass.DATASET, FileClass.DATASET, FileClass.SYSTEM]
    return profile_of([InventedTrace(rows, classes)], tmp_path_factory.mktemp("sound")).model_dump(
        by_alias=True
    )


def changed(document: dict[str, Any], path: str, change: Any) -> Profile:
    """The profile with one attribute changed, unchecked by the schema."""
    document = copy.deepcopy(document)
    *above, last = [int(p) if p.isdecimal() else p for p in path.split(".")]
    place: Any = document
    for part in above:
        place = place[part]
    place[last] = change(place[last]) if callable(change) else change
    return Profile.model_validate(document)


FAULTS = {
    "bytes do not add up": ("workflow.io.bytes.total", lambda b: b + 1, r"workflow\.io\.bytes"),
    "shares of operations do not add up": ("files.0.io.ops_share.data", 0.1, r"files\[0\]\.io\.ops_share"),
    "shares of time do not add up": ("apps.0.io.time_share.metadata", 0.9, r"apps\[0\]\.io\.time_share"),
    "shares of patterns do not add up": (
        "phases.0.io.access_pattern.random",
        0.5,
        r"phases\[0\]\.io\.access_pattern",
    ),
    "sizes without operations": (
        "excluded.io.transfer_size.read",
        {"min": 1, "p50": 1, "p90": 1, "max": 1, "common": [], "histogram": {}},
        "transfer_size.read",
    ),
    "operations without sizes": ("workflow.io.transfer_size.write", None, "transfer_size.write"),
    "bins do not add up": ("workflow.io.transfer_size.read.histogram", {"0-1K": 1}, "histogram adds up to 1"),
    "percentiles out of order": ("workflow.io.transfer_size.read.p50", 1 << 40, "percentiles"),
    "total time below a part": ("workflow.io.time_s.total", 0.0, r"time_s"),
    "total time above its parts": ("apps.0.io.time_s.total", 9.0, r"time_s"),
    "time without an operation": (
        "excluded.io.busy_s",
        {"read": 0.0, "write": 0.0, "metadata": 0.0, "total": 9.0},
        "busy_s",
    ),
    "busier than all processes together": (
        "files.0.io.busy_s",
        {"read": 9.0, "write": 9.0, "metadata": 0.0, "total": 9.0},
        "busy_s",
    ),
    "more past the end than asked for": ("files.0.io.past_end.read", 1 << 40, "past_end"),
    "more touched than moved": ("files.0.io.footprint.written", 1 << 40, "footprint"),
    "apps do not add up in bytes": ("apps.0.io.bytes", {"read": 0, "written": 12288, "total": 12288}, "."),
    "apps do not add up in operations": ("apps.0.io.ops.metadata", lambda n: n + 1, "apps: ops.metadata"),
    "phases do not add up": ("phases", lambda p: p[:-1], "phases"),
    "files do not add up": (
        "files.0.io.bytes",
        {"read": 1 << 20, "written": 12288, "total": (1 << 20) + 12288},
        ".",
    ),
    "files missing": ("workflow.files.shared", lambda n: n + 1, "workflow.files"),
    "an app's files": ("apps.0.files.total", lambda n: n + 1, r"apps\[0\]\.files"),
    "processes": ("workflow.processes", lambda n: n + 1, "workflow.processes"),
    "a phase ends before it starts": ("phases.0.end_s", -0.0, r"phases\[0\]"),
    "busier than the run": ("workflow.runtime_s", 0.0001, "longer than"),
    "an app busier than its run": ("apps.0.runtime_s", 0.0001, "longer than its run"),
    "a process slower than the run": ("apps.0.balance.slowest_io_time_s", 1e6, "slowest_io_time_s"),
    "more operations than records": ("traces.0.records", 1, "records"),
}


def test_a_sound_profile_passes(sound):
    refuse_contradictions(Profile.model_validate(sound))


@pytest.mark.parametrize("name", FAULTS)
def test_a_contradiction_is_found_and_named(sound, name):
    path, change, says = FAULTS[name]
    wrong = changed(sound, path, change)
    if name == "a phase ends before it starts":
        first = wrong.phases[0].model_copy(update={"start_s": 1.0, "end_s": 0.5})
        wrong = wrong.model_copy(update={"phases": [first, *wrong.phases[1:]]})
    with pytest.raises(SelfCheckError, match=says) as error:
        refuse_contradictions(wrong)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 3


def test_nothing_is_written_if_the_self_check_fails(tmp_path, monkeypatch):
    def fail(_: Profile) -> None:
        raise SelfCheckError("self-check failed: made to")

    monkeypatch.setattr("vani.analyzers.assemble.refuse_contradictions", fail)
    with pytest.raises(SelfCheckError):
        profile_of([InventedTrace([read()])], Path(tmp_path))


def test_overlapping_calls_of_a_process_in_two_phases_are_consistent(tmp_path):
    # A write of rank 1 begins a phase while rank 0 is in a read, within which it opens the file once more.
    ms = MILLISECOND
    rows = [
        call(flags=128, lasts=0),
        read(at=40 * ms, lasts=9 * ms // 2),
        call(flags=Flag.OPEN, at=42 * ms, lasts=ms // 2),
        write(rank=1, at=41 * ms, lasts=0),
        read(rank=1, size=0, at=81 * ms, lasts=0),
    ]
    found = profile_of([InventedTrace(rows, ranks=2)], tmp_path)
    assert len(found.phases) > 1
    assert sum(p.io.time_s.total for p in found.phases) > found.workflow.io.time_s.total == 0.0045
