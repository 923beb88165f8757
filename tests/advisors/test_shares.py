"""Patterns and their shares are of the bytes and seconds that they are about (`../shared/cases/README.md`)."""

from __future__ import annotations

import tarfile

import pytest
from builders import profile, system

import vani
from tests.analyzers.test_asked import case
from vani.advisors.access_table import REQUEST, Part, through_libraries
from vani.advisors.judge import advise_document, diagnosis
from vani.render.advice import to_markdown as markdown
from vani.render.answers import observation_lines, worth_showing
from vani.schema.advice import Observation


def patterns_of(name, folder):
    path = case(name)
    if name.endswith(".tgz"):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        path = folder / name.removesuffix(".tgz")
    return {seen.pattern: seen for seen in diagnosis(vani.profile(path, store=folder / "store"))}


@pytest.mark.parametrize(
    ("name", "there", "absent"),
    [
        ("pfw-headers.tgz", set(), {"small_requests", "random_access"}),
        ("h5sub-recorder", set(), {"independent_io"}),
        ("h5align-recorder", {"misaligned"}, set()),
        ("h5align-after-recorder", set(), {"misaligned"}),
        ("h5cache-recorder", {"small_requests"}, set()),
    ],
)
def test_bytes_and_seconds_decide(name, there, absent, tmp_path):
    found = patterns_of(name, tmp_path).keys()
    assert there <= found
    assert absent.isdisjoint(found)


def test_a_share_is_that_of_the_requests_and_not_of_their_file(tmp_path):
    # 4,096 reads of 8,192 B take 3.4 % of the I/O time, 19 writes of large chunks the rest.
    seen = patterns_of("h5cache-recorder", tmp_path)
    assert seen["small_requests"].share == pytest.approx(0.034, abs=0.005)
    assert seen["strided_access"].share == pytest.approx(0.034, abs=0.005)


@pytest.mark.parametrize(
    ("part", "requests", "notable"),
    [
        (Part(0.001, 0.2, 1.0), 0.0, True),
        (Part(0.2, 0.001, 1.0), 0.0, True),
        (Part(0.001, 0.001, 1.0), 1.0, False),
        # Without times, a request counts as much as a MiB: 8 headers for 60 MB, and 1,152 for 26 MB.
        (Part(0.00005, None, None), 8 / 100e6, False),
        (Part(0.037, None, None), 1152 / 26e6, True),
    ],
)
def test_what_is_notable(part, requests, notable):
    assert part.is_notable(0.1, requests) is notable
    assert REQUEST == 1 << 20


def seen(share):
    return Observation(pattern="small_requests", target={"kind": "job"}, evidence=[], share=share, rules=[])


def test_screens_leave_out_what_takes_less_than_a_hundredth_unless_nothing_takes_more():
    large, small, unknown = seen(0.4), seen(0.009), seen(None)
    assert worth_showing([large, small, unknown]) == [large, unknown]
    assert worth_showing([small]) == [small]
    advice = advise_document(profile(), system()).model_copy(update={"diagnosis": [large, small, unknown]})
    assert markdown(advice).count("| small requests |") == 2


@pytest.mark.parametrize("name", ["h5sub-recorder", "indep-recorder", "wa-recorder"])
def test_no_reason_denies_what_the_table_shows(name):
    profile = vani.profile(case(name))
    shared = {row.file for row in profile.accesses if row.layer == "mpiio" and row.file and (row.processes or 0) > 1}
    assert shared
    reasons = [silent.why for silent in vani.advise(profile).no_recommendation]
    assert not [why for why in reasons if "no file is shared by several processes through MPI-IO" in why]


def test_a_pattern_is_shown_with_its_seconds_and_numbers():
    evidence = [
        {"attribute": "files[3].path", "value": "/lustre/run/records.log"},
        {"attribute": "files[3].io.ops.write", "value": 25600},
        {"attribute": "files[3].io.transfer_size.write.p50", "value": 8192},
        {"attribute": "files[4].io.ops.write", "value": 7},
    ]
    target = {"kind": "file", "path": "/lustre/run/records.log"}
    seen = Observation(
        pattern="small_requests", target=target, evidence=evidence, share=0.5, time_s=12.0, rules=["POS002", "MIO001"]
    )
    start = "small requests, 50 % of the I/O time, 12 s (POS002): "
    [line] = observation_lines([seen], 200, {"POS002"})
    assert line == f"{start}25,600 writes, 8.19 kB in a usual write: /lustre/run/records.log"
    [line] = observation_lines([seen], 90, {"POS002"})
    assert line.startswith(f"{start}25,600 writes: ")
    assert line.endswith("/records.log")
    assert len(line) == 90


@pytest.mark.parametrize(
    ("name", "expected"),
    # nbio: no call below MPI-IO is recorded. rank0 uses MPI, and not MPI-IO.
    [("h5many-recorder", True), ("indep-recorder", True), ("nbio-recorder", True), ("rank0-recorder", False)],
)
def test_the_table_shows_whether_libraries_move_the_data(name, expected):
    profile = vani.profile(case(name))
    assert through_libraries(profile, profile.apps[0]) is expected
