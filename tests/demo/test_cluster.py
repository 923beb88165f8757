"""The scheduler and programs of `vani centre demo`, and the logs they write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vani.centre.demo.cluster import Machinery, Submitted, run_day
from vani.centre.demo.darshan_log import log_bytes
from vani.centre.demo.programs import PROGRAMS
from vani.demo.striped_model import MACHINES, Component, MiB
from vani.readers.darshan.log import open_log
from vani.readers.darshan.totals import read_created, read_totals

QUIET = replace(MACHINES["many slow targets"], noise=0.0)
BY_NAME = {program.name: program for program in PROGRAMS}


def day(*names, nodes=4, hook=None):
    machinery = Machinery(QUIET, nodes, 0)
    return run_day(machinery, [Submitted(n, BY_NAME[name], 0.0) for n, name in enumerate(names, 1)], hook)


class Striped:
    """A hook that gives every file a fixed number of stripes."""

    def __init__(self, *targets):
        self.layout = (Component(None, len(targets), MiB, targets=targets),)

    def begins(self, job, storage):
        return lambda path: self.layout

    def ended(self, ended):
        pass


def test_file_on_one_target_takes_the_time_of_that_target():
    (ended,) = day("checkpoint")
    # Three times 4 x 24 MiB on targets of 16 MB/s.
    assert ended.io_s == pytest.approx(3 * 96 * MiB / 16e6, rel=0.1)


def test_layouts_of_the_hook_are_used():
    (ended,) = day("checkpoint", hook=Striped(*range(8)))
    assert ended.io_s < day("checkpoint")[0].io_s / 3
    assert {tuple(targets) for _, targets in ended.log.stripes.values()} == {tuple(range(8))}


def test_jobs_of_one_program_run_in_sequence_and_others_in_parallel():
    ended = day("solver", "solver", "samples", nodes=8)
    first, second = (entry for entry in ended if entry.job.program.name == "solver")
    other = next(entry for entry in ended if entry.job.program.name == "samples")
    assert second.begin_s == first.end_s
    assert other.begin_s == first.begin_s == 0.0


def test_jobs_wait_for_nodes_in_the_order_of_the_queue():
    ended = day("checkpoint", "fields", "samples", nodes=4)
    assert [entry.job.number for entry in sorted(ended, key=lambda entry: entry.begin_s)] == [1, 2, 3]


@pytest.mark.parametrize("name", BY_NAME)
def test_log_agrees_with_the_program(tmp_path, name):
    (ended,) = day(name)
    path = tmp_path / "run.darshan"
    path.write_bytes(log_bytes(ended.log))
    totals = read_totals(path)
    sums = [use.counters for use in ended.log.uses]
    assert totals.slowest_s == pytest.approx(ended.io_s)
    assert (totals.job_id, totals.processes, totals.mount) == (1, BY_NAME[name].nodes, "/scratch")
    assert totals.bytes_written == sum(counters.get("BYTES_WRITTEN", 0) for counters in sums)
    assert totals.bytes_read == sum(counters.get("BYTES_READ", 0) for counters in sums)
    assert (totals.stripes, totals.complete) == (1, True)
    created = set(read_created(open_log(path)).paths)
    assert created == {use.path for use in ended.log.uses if use.counters.get("WRITES")}
