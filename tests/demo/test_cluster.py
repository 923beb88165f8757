"""The scheduler and programs of `vani centre demo`, and the logs they write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vani.centre.demo.cluster import PROGRAMS, Machinery, Submitted, run_day
from vani.demo.striped_model import MACHINES, Component, MiB

QUIET = replace(MACHINES["many slow targets"], noise=0.0)
BY_NAME = {program.name: program for program in PROGRAMS}


def day(*names, nodes=4, layout=None):
    machinery = Machinery(QUIET, nodes, 0)
    jobs = [Submitted(n, BY_NAME[name], 0.0) for n, name in enumerate(names, 1)]
    return run_day(machinery, jobs, lambda path: layout)


def counts(ended):
    """Stripe counts of the written files."""
    return ended.stored(0.0, 1)[1].stripes


def test_file_on_one_target_takes_the_time_of_that_target():
    (ended,) = day("checkpoint")
    # Three times 4 x 24 MiB on targets of 16 MB/s.
    assert ended.io_s == pytest.approx(3 * 96 * MiB / 16e6, rel=0.1)


def test_new_files_get_the_layout_of_the_day():
    (ended,) = day("checkpoint", layout=(Component(None, 8, MiB, targets=tuple(range(8))),))
    assert ended.io_s < day("checkpoint")[0].io_s / 3
    assert set(counts(ended)) == {8}


def test_files_that_exist_keep_their_layout():
    machinery, wide = Machinery(QUIET, 4, 0), (Component(None, 8, MiB),)
    job = Submitted(1, BY_NAME["checkpoint"], 0.0)
    run_day(machinery, [job])
    (kept,) = run_day(machinery, [job], lambda path: wide, keeps=True)
    assert set(counts(kept)) == {1}
    (renewed,) = run_day(machinery, [job], lambda path: wide)
    assert set(counts(renewed)) == {8}


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
def test_history_keeps_what_a_log_would_show(name):
    (ended,) = day(name)
    run, created = ended.stored(0.0, 1)
    assert (run.job, run.processes, run.mount, run.stripes) == ("1", BY_NAME[name].nodes, "/scratch", 1)
    assert run.slowest_s == ended.io_s
    assert sum(created.sizes) == (run.bytes_written or 0)
    assert set(created.paths) == set(ended.run.written)
    assert run.in_io_s == pytest.approx(sum(getattr(run, kind) or 0.0 for kind in ("read_s", "write_s", "metadata_s")))
