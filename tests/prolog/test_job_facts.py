"""What the environment of a prolog tells about a job."""

import pytest

from vani.errors import InputError
from vani.prolog.job_facts import facts_of

SLURM = {
    "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "bt-d", "SLURM_JOB_USER": "ada", "SLURM_JOB_PARTITION": "all",
    "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4",
}  # fmt: skip


def test_a_job_is_what_slurm_says_of_it():
    job = facts_of(SLURM | {"SLURM_JOB_END_TIME": "2000"}, 1000.0)
    assert (job.job, job.name, job.user, job.nodes, job.hosts) == ("4711", "bt-d", "ada", 4, "n[1-4]")
    assert (job.start_s, job.end_s) == (1000.0, 2000.0)


@pytest.mark.parametrize("number", ["", "0", "-1", "1e3", "4711\n", "../4711", "4" * 40, "٣"])
def test_a_job_without_a_number_is_refused(number):
    with pytest.raises(InputError, match="SLURM_JOB_ID"):
        facts_of(SLURM | {"SLURM_JOB_ID": number}, 0.0)


def test_what_slurm_does_not_say_is_none():
    job = facts_of({"SLURM_JOB_ID": "1"}, 0.0)
    assert (job.name, job.user, job.nodes, job.hosts, job.end_s) == (None,) * 5


def test_a_time_limit_that_slurm_does_not_know_is_none():
    assert facts_of(SLURM | {"SLURM_JOB_END_TIME": "4294967294000"}, 0.0).end_s is None
    assert facts_of(SLURM | {"SLURM_JOB_END_TIME": "UNLIMITED"}, 0.0).end_s is None


def test_names_of_any_bytes_can_be_written_down():
    name = b"a\xff\n'\"$(x)".decode(errors="surrogateescape")
    found = facts_of(SLURM | {"SLURM_JOB_NAME": name}, 0.0).name
    assert found is not None
    assert found.encode().decode() == found
    assert len(facts_of(SLURM | {"SLURM_JOB_NAME": "x" * 5000}, 0.0).name or "") == 200
