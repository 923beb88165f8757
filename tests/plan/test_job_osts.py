"""OSTs for the files of a job while other jobs run."""

from __future__ import annotations

from tests.plan.test_job_stripes import MIB, job
from vani.centre.plan.job_design import InUse, osts_for
from vani.centre.plan.schema.jobs import AccessPattern
from vani.centre.plan.schema.snapshot import Target

RATE = 16e6


def chosen(planned, count, *, widened=True, wide=(), narrow=(), read=(), rate=RATE, used=()):
    targets = [
        Target(index=n, size=1 << 40, used=dict(used).get(n, 0), load=0.0, state="ok") for n in range(16)
    ]
    in_use = InUse(set(wide), set(narrow), set(read))
    own = osts_for(planned, count, targets, in_use, is_widened=widened, target_rate=rate)
    return sorted(target.index for target in own)


def small(**changes):
    own = AccessPattern(layout="file_per_process", request=65536)
    return job(**{"processes": 2, "nodes": 2, "bytes": 6.0 * MIB, "pattern": own, "io_s": fast()} | changes)


def fast(low=0.4):
    return {"low": low, "median": 2 * low, "high": 9.0, "runs": 8}


def test_a_shared_file_takes_its_stripes_on_the_emptiest_osts_and_none_of_the_narrow_ones():
    assert chosen(job(), 8) == list(range(8))
    assert chosen(job(), 8, used={0: 1 << 30, 1: 1 << 30}.items()) == list(range(2, 10))
    assert chosen(job(), 8, narrow=range(4)) == list(range(4, 12))


def test_widened_files_together_leave_osts_to_others():
    own = job(pattern=AccessPattern(layout="file_per_process", request=MIB))
    assert len(chosen(own, 4)) == 6
    assert chosen(own, 4, wide=range(8)) == [8, 9, 10, 11]
    # No more are free, so it shares the rest with the other widened file.
    assert set(chosen(own, 4, wide=range(10))) > {10, 11}
    assert set(chosen(own, 4, wide=range(10))) <= set(range(12))


def test_file_with_many_stripes_gets_them_even_from_avoided_osts():
    assert len(chosen(job(), 16, narrow=range(4))) == 16
    assert set(range(6, 16)) <= set(chosen(job(), 12, narrow=range(6)))
    assert not set(range(4)) & set(chosen(job(), 12, narrow=range(4, 8), read=range(4)))


def test_small_job_avoids_the_others_with_few_osts():
    assert chosen(small(), 1, widened=False, wide=range(10)) == [10, 11, 12, 13]
    # Two are free, as many as its processes need.
    assert chosen(small(), 1, widened=False, wide=range(10), narrow=range(10, 14)) == [14, 15]
    assert chosen(small(), 1, widened=False, wide=range(10), read=range(10, 14)) == [14, 15]
    # None is free, so it shares OSTs with other small files rather than with wide ones.
    assert set(chosen(small(), 1, widened=False, wide=range(10), narrow=range(10, 16))) <= set(range(10, 16))


def test_job_that_fills_many_targets_or_has_no_known_rate_is_not_confined():
    assert len(chosen(small(bytes=6.0 * 1024 * MIB), 1, widened=False)) == 16
    assert len(chosen(small(), 1, widened=False, rate=None)) == 16
    assert len(chosen(small(processes=64), 1, widened=False)) == 16
