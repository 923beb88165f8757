"""Figures of a future job, from runs made by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from vani.centre.history.learned import Scale, job_learned, plain_pattern
from vani.centre.history.rows import PlannedRun, StoredRun
from vani.centre.plan.schema.jobs import AccessPattern

MIB = 1 << 20
RUN = StoredRun(
    digest="0", kind="darshan", user="ada", uid=1, application="app", processes=4, submitted=0.0, runtime_s=100.0,
    bytes_read=0, bytes_written=100 * MIB, reads=0, writes=100, opens=4, metadata=8, collective=0, independent=0, files=4,
    shared_files=0, read_s=0.0, write_s=4.0, metadata_s=0.1, in_io_s=4.0, slowest_s=10.0, waiting_s=40.0, writers=4,
    file_system="lustre", mount="/scratch", stripes=1, complete=True, target_times=None, job=None,
)  # fmt: skip
PLAN = PlannedRun(
    job="1", ended=0.0, name="job", user="ada", nodes=4, digest="0", application="app", processes=4, stripe_count=8,
    io_nodes=0, changed=True, before=10.0, expected=2.0, low=1.0, high=4.0, measured=2.0, method="", reason="",
)  # fmt: skip
OWN = AccessPattern(layout="file_per_process", request=MIB)


def runs(*seconds, stripes=1, first=0):
    return [
        replace(RUN, digest=str(first + n), slowest_s=value, stripes=stripes) for n, value in enumerate(seconds)
    ]


def learned(some, plans=(), pattern=OWN):
    planned = {plan.digest: plan for plan in plans}
    return job_learned(Scale("job", 4, 4, some, planned, pattern, "no names"))


def test_rates_are_medians_of_the_runs_while_they_do_io():
    job = learned(runs(10.0, 20.0, 5.0))
    assert job.demand.iobw == 10 * MIB
    assert (job.demand.iops, job.demand.mdops) == (10.0, 0.8)
    assert (job.bytes, job.runs, job.usual_stripes) == (100 * MIB, 3, 1)
    assert (job.io_s.low, job.io_s.median, job.io_s.high) == (5.0, 10.0, 20.0)


@pytest.mark.slow
def test_eight_of_ten_further_runs_are_within_the_range_of_earlier_ones():
    random = np.random.default_rng(0)
    within = []
    for _ in range(2000):
        *earlier, one_more = random.lognormal(1.0, 0.5, 13).tolist()
        io_s = learned(runs(*earlier)).io_s
        within.append(io_s.low <= one_more <= io_s.high)
    assert np.mean(within) == pytest.approx(0.8, abs=0.03)


def test_osts_that_most_of_its_runs_read_from_are_known():
    def reads(*targets, read=100 * MIB):
        times = json.dumps([[target, 1.0, 2.0, 1e6] for target in targets])
        return replace(RUN, bytes_read=read, bytes_written=0, target_times=times)

    assert learned([reads(3, 4), reads(4, 3), reads(4, 9)]).reads_from == [3, 4]
    assert learned([reads(3), reads(4), reads(5)]).reads_from is None
    assert learned([replace(reads(3, read=0), bytes_written=MIB)] * 3).reads_from is None


def test_unknown_figures_are_null_with_a_reason():
    job = learned([replace(RUN, slowest_s=None, stripes=None)], pattern="not told")
    assert (job.demand, job.io_s, job.by_stripes, job.pattern, job.creations, job.curve) == (None,) * 6
    assert {entry.name for entry in job.unknown} == {
        "curve", "by_stripes", "pattern", "creations", "demand", "io_s",
    }  # fmt: skip


def test_runs_that_a_plan_changed_make_the_curve_and_not_the_usual_time():
    fast = runs(2.0, 2.0, stripes=8, first=10)
    job = learned([*runs(10.0, 10.0, 10.0), *fast], [replace(PLAN, digest=run.digest) for run in fast])
    assert [(item.stripe_count, item.bandwidth, item.runs) for item in job.by_stripes] == [
        (1, 10 * MIB, 3),
        (8, 50 * MIB, 2),
    ]
    assert (job.io_s.median, job.io_s.runs, job.usual_stripes, job.avoid) == (10.0, 3, 1, [])
    assert [(item.stripe_count, item.median, item.runs) for item in job.by_plan] == [(8, 2.0, 2)]


def test_numbers_of_io_nodes_that_plans_gave_make_a_curve():
    some = [*runs(10.0), *runs(5.0, 5.0, first=1)]
    job = learned(some, [replace(PLAN, digest=str(n), changed=False, io_nodes=min(n, 1)) for n in range(3)])
    assert [(item.io_nodes, item.bandwidth) for item in job.curve] == [(0, 10 * MIB), (1, 20 * MIB)]


@pytest.mark.parametrize(("seconds", "avoided"), [(30.0, [8]), (10.5, []), (2.0, [])])
def test_a_setting_that_made_runs_slower_beyond_their_noise_is_to_be_avoided(seconds, avoided):
    slow = runs(seconds, stripes=8, first=10)
    job = learned([*runs(10.0, 9.0, 10.0, 11.0), *slow], [replace(PLAN, digest="10")])
    assert [entry.stripe_count for entry in job.avoid] == avoided


def test_two_runs_do_not_show_how_much_runs_differ():
    job = learned([*runs(10.0, 10.0), *runs(90.0, stripes=8, first=10)], [replace(PLAN, digest="10")])
    assert job.avoid == []


def test_sums_reveal_own_files_of_processes_but_not_shared_ones():
    assert plain_pattern(RUN) == OWN
    assert isinstance(plain_pattern(replace(RUN, shared_files=1)), str)
    assert isinstance(plain_pattern(replace(RUN, writes=None)), str)
