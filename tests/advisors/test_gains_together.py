"""Gains of several recommendations: no second of the run is saved twice."""

from __future__ import annotations

from dataclasses import replace

from builders import profile
from hypothesis import given
from hypothesis import strategies as st

from vani.advisors.competing_findings import Judged, together
from vani.advisors.lustre.stripe_count import StripeCount
from vani.advisors.rule import Finding, Gain, Target
from vani.models.io_time import IOTime

KINDS = ("read", "write", "metadata")
# Calls of each kind take place all the time.
RUN = profile(busy_s=1e6, change={"workflow.io.busy_s.metadata": 1e6})


@st.composite
def findings(draw) -> Finding:
    before = draw(st.floats(0.5, 100))
    after = draw(st.floats(0, 1)) * before
    return Finding(
        target=Target("job", app=draw(st.sampled_from([None, "a", "b"]))),
        reason="because",
        confidence=1.0,
        touched_s=before,
        recommended={},
        current={},
        evidence=(),
        gain=Gain(f"{draw(st.sampled_from(KINDS))}_time_s", before, after, after / 2, after * 2, "by hand"),
        acts_on=draw(st.sampled_from(["file_system", "libraries"])),
        files=frozenset(draw(st.sets(st.sampled_from(["/x", "/y", "/z"])))),
    )


def won(some: list[Finding]) -> float:
    return sum(finding.known_gain.seconds for finding in some if finding.known_gain)


def add_up(some: list[Finding], slowest_s: float, calls_s: float, run=RUN) -> list[Finding]:
    time = IOTime(200.0, slowest_s, slowest_s, calls_s, None, None, (), 1, 0.0, calls_s)
    return together([Judged(StripeCount, finding, won([finding])) for finding in some], time, run)


@given(st.lists(findings(), max_size=8), st.floats(1, 100), st.floats(0, 100))
def test_all_together_save_no_more_than_the_time_in_io(some, slowest_s, more_s):
    assert won(add_up(some, slowest_s, slowest_s + more_s)) <= slowest_s + more_s + 1e-6
    in_files = [finding for finding in add_up(some, slowest_s, slowest_s + more_s) if finding.acts_on == "file_system"]
    assert won(in_files) <= slowest_s + 1e-6


@given(st.lists(findings(), max_size=8))
def test_findings_that_act_on_the_same_time_save_no_more_than_the_longest_of_them(some):
    """Those without files act on all files of their app, or of the run."""
    followed = add_up(some, 1e6, 1e6)
    for kind in KINDS:
        for file in ("/x", "/y", "/z"):
            for app in ("a", "b"):
                same = [
                    (before, after)
                    for before, after in zip(some, followed, strict=True)
                    if before.gain.metric.startswith(kind)
                    and (not before.files or file in before.files)
                    and before.target.app in (None, app)
                ]
                longest = max((before.gain.before_s for before, _ in same), default=0.0)
                assert won([after for _, after in same]) <= longest + 1e-6


@given(st.lists(findings(), max_size=8), st.floats(1, 100))
def test_findings_on_one_kind_of_call_save_at_most_the_time_spent_in_it(some, busy_s):
    run = profile(busy_s=busy_s, change={"workflow.io.busy_s.metadata": busy_s})
    followed = add_up([replace(finding, acts_on="file_system") for finding in some], 1e6, 1e6, run)
    for kind in KINDS:
        of_kind = [
            after for before, after in zip(some, followed, strict=True) if before.gain.metric.startswith(kind)
        ]
        assert won(of_kind) <= busy_s + 1e-6
