"""The permitted distance of a value from its baselines: the formula of docs/check.md, computed here a second time."""

from __future__ import annotations

import statistics

import pytest
from gate_cases import changed, found, policy, verdict
from hypothesis import assume, given
from hypothesis import strategies as st

from vani.gate.tolerance import DEFAULTS, TABLE, limits_of, tolerance_of

whole = st.integers(0, 10**9)
several = st.lists(whole, min_size=1, max_size=9)


@given(several, st.floats(0, 2), st.floats(0, 1e6), whole, st.sampled_from(["increase", "decrease", "both"]))
def test_values_within_the_tolerance_or_the_range_of_the_baseline_are_accepted(values, relative, absolute, value, direction):
    limits = limits_of(values, relative=relative, absolute=absolute)
    middle = statistics.median(values)
    most = max(relative * abs(middle), absolute)
    low, high = min(middle - most, *values), max(middle + most, *values)
    # At the very limit, the rounding of a document decides.
    assume(min(abs(value - low), abs(value - high)) > 2e-9 * max(1, value, *values))
    good = {"increase": value <= high, "decrease": value >= low, "both": low <= value <= high}[direction]
    assert limits.accepts(value, direction) is good


@given(several, st.randoms())
def test_the_order_of_baselines_does_not_matter(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert limits_of(values, relative=0.1, absolute=1) == limits_of(shuffled, relative=0.1, absolute=1)


@given(several, st.sampled_from(["increase", "decrease", "both"]))
def test_no_run_of_the_baseline_fails_against_it(values, direction):
    limits = limits_of(values, relative=0, absolute=0)
    assert all(limits.accepts(value, direction) for value in values)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), st.sampled_from(["increase", "decrease", "both"]))
def test_no_time_of_the_baseline_fails_against_it(values, direction):
    limits = limits_of(values, relative=0, absolute=0)
    assert all(limits.accepts(value, direction) for value in values)


def test_counts_are_exact_even_if_large():
    limits = limits_of([2**60], relative=0, absolute=0)
    assert limits.accepts(2**60, "both")
    assert not limits.accepts(2**60 + 1, "increase")
    assert limits.accepts(2**60 - 1, "increase")


def test_rounding_of_a_document_is_not_a_difference():
    # Both are 0.1 to nine digits.
    assert limits_of([0.1], relative=0, absolute=0).accepts(0.1 + 1e-12, "both")
    assert not limits_of([0.1], relative=0, absolute=0).accepts(0.1 + 1e-6, "both")


@pytest.mark.parametrize(
    ("dotted", "relative", "absolute", "direction", "level"),
    [
        ("workflow.io.ops.metadata", 0, 0, "increase", "error"),
        ("apps.io.bytes.written", 0, 0, "increase", "error"),
        ("workflow.files.total", 0, 0, "increase", "error"),
        ("workflow.runtime_s", 0.25, 0.1, "increase", "warning"),
        ("files.io.time_s.read", 0.25, 0.1, "increase", "warning"),
        ("workflow.io_time_share", 0, 0.05, "increase", "warning"),
        ("apps.io.access_pattern.consecutive", 0, 0.05, "decrease", "warning"),
        ("apps.io.access_pattern.strided", 0, 0.05, "both", "warning"),
        ("apps.io.time_share.metadata", 0, 0.05, "increase", "warning"),
        ("apps.io.time_share.sync", 0, 0.05, "increase", "warning"),
        ("workflow.io_time_share_slowest", 0, 0.05, "increase", "warning"),
        ("workflow.io.ops.sync", 0, 0, "increase", "error"),
        ("workflow.io.metadata_kinds.stat.count", 0, 0, "increase", "error"),
        ("workflow.io.metadata_kinds.stat.time_s", 0.25, 0.1, "increase", "warning"),
        ("workflow.io.bandwidth.write_synced", 0.25, 0, "decrease", "warning"),
        ("workflow.library_time_s.mpiio.total", 0.25, 0.1, "increase", "warning"),
        ("folders.creates", 0, 0, "increase", "error"),
        ("workflow.io.bandwidth.write", 0.25, 0, "decrease", "warning"),
        ("workflow.io.transfer_size.write.p50", 0.1, 0, "decrease", "warning"),
        ("workflow.processes", 0, 0, "both", "warning"),
        ("job.nodes", 0, 0, "both", "warning"),
    ],
)
def test_the_table(dotted, relative, absolute, direction, level):
    one = tolerance_of(dotted)
    assert (one.relative, one.absolute, one.direction, one.level) == (relative, absolute, direction, level)


def test_table_lines_do_not_hide_later_ones():
    samples = [
        "workflow.processes", "x.access_pattern.random", "x.access_pattern.consecutive", "x.collective_share",
        "x.ops_share.metadata", "x.time_share.sync", "x.io_time_share", "x.io_time_share_slowest", "x.ops_share.data", "x.access_pattern.strided", "x.bandwidth.read",
        "x.transfer_size.read.p50", "x.granularity.data", "x.ops.read", "x.bytes.read", "x.bytes_written",
        "x.footprint.read", "x.past_end.read", "files.opens", "x.calls", "x.metadata_kinds.open.count",
        "x.files.total", "dataset.files", "dataset.size", "folders.files", "folders.creates", "folders.entries", "patterns.files", "patterns.reads", "patterns.writes", "x.start_s", "x.end_s", "x.first_s", "x.last_s", "x.phase_gap_s", "x.period_s", "x.repeats.count",
        "x.dominant.share", "x.runtime_s", "x.time_s.read",
    ]  # fmt: skip
    assert len(samples) == len(TABLE)
    for sample, (_, tolerance) in zip(samples, TABLE, strict=True):
        assert tolerance_of(sample) is tolerance, sample


class TestBuiltInList:
    """The comparisons if a policy names none of its own."""

    def test_run_passes_against_itself(self, tmp_path):
        check = verdict(policy(tmp_path, "[check]\n"), baselines=[changed()])
        assert check.verdict == "pass"
        assert {one.status for one in check.judgements} == {"pass"}
        assert len(check.judgements) >= len(DEFAULTS) - 5

    def test_one_operation_more_is_an_error(self, tmp_path):
        check = verdict(policy(tmp_path, "[check]\n"), changed(workflow__io__ops__metadata=77), [changed()])
        assert found(check)[0] == ("fail", "change of workflow.io.ops.*: workflow.io.ops.metadata")
        assert check.judgements[0].message == (
            "workflow.io.ops.metadata is 77 (+1.32 %), and was 76 in the baseline; allowed: no increase"
        )
        assert (check.judgements[0].value, check.judgements[0].baseline, check.verdict) == (77, 76, "fail")

    def test_one_operation_less_is_fine(self, tmp_path):
        check = verdict(policy(tmp_path, "[check]\n"), changed(workflow__io__ops__metadata=75), [changed()])
        assert check.verdict == "pass"

    def test_a_longer_run_is_a_warning(self, tmp_path):
        # 31.5 s in the baseline: a quarter more is 39.4 s.
        checks = policy(tmp_path, "[check]\n")
        slow = verdict(checks, changed(workflow__runtime_s=39.5), [changed()])
        assert (slow.judgements[0].status, slow.judgements[0].level) == ("fail", "warning")
        assert slow.verdict == "pass with warnings"
        assert verdict(checks, changed(workflow__runtime_s=39.5), [changed()], fail_on="warning").verdict == "fail"
        assert verdict(checks, changed(workflow__runtime_s=39.3), [changed()], fail_on="warning").verdict == "pass"

    def test_counts_that_differ_between_runs_of_the_baseline_allow_their_range(self, tmp_path):
        checks = policy(tmp_path, "[[check.change]]\nattribute = 'workflow.io.ops.metadata'\n")
        runs = [changed(workflow__io__ops__metadata=count) for count in (70, 74, 90)]
        assert verdict(checks, changed(workflow__io__ops__metadata=90), runs).verdict == "pass"
        more = verdict(checks, changed(workflow__io__ops__metadata=91), runs)
        assert more.verdict == "fail"
        assert more.judgements[0].message.endswith(
            "and was 74 in the baseline (median of 3 runs); allowed: as in the baseline's runs, so up to 90"
        )

    def test_different_number_of_processes_is_reported(self, tmp_path):
        check = verdict(policy(tmp_path, "[check]\n"), changed(workflow__processes=32), [changed()])
        assert found(check)[0] == ("fail", "change of workflow.processes: workflow.processes")

    def test_app_named_after_its_trace_is_still_compared(self, tmp_path):
        other = changed(apps__0__name="run-2", phases__0__app="run-2", interfaces__1__app="run-2")
        check = verdict(policy(tmp_path, "[check]\n"), changed(), [other])
        names = [id_ for status, id_ in found(check) if status == "pass"]
        assert 'change of interfaces[*].calls: interfaces[app="v3-cm1like-16r", layer="posix"].calls' in names

    def test_single_app_does_not_repeat_the_workflow(self, tmp_path):
        checks = policy(tmp_path, "[check]\n")
        assert not any("apps[*]" in one.check for one in verdict(checks, baselines=[changed()]).judgements)
        two = changed()
        two["apps"].append(dict(two["apps"][0], name="other"))
        assert ("pass", 'change of apps[*].io.ops.*: apps[name="other"].io.ops.read') in found(verdict(checks, two, [two]))
