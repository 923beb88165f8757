"""Facts about a job in the environment of a prolog."""

import pytest

from vani.centre.prolog.state import facts_of, number_of, variables_of
from vani.errors import InputError

SLURM = {
    "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "bt-d", "SLURM_JOB_USER": "ada", "SLURM_JOB_PARTITION": "all",
    "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4",
}  # fmt: skip


def test_job_facts_come_from_slurm():
    job = facts_of(SLURM | {"SLURM_JOB_END_TIME": "2000"}, 1000.0)
    assert (job.job, job.name, job.user, job.nodes, job.hosts) == ("4711", "bt-d", "ada", 4, "n[1-4]")
    assert (job.start_s, job.end_s) == (1000.0, 2000.0)


FLUX = {"FLUX_JOB_ID": "ƒ2oLkTLb", "FLUX_JOB_USERID": "1001", "FLUX_JOB_RANKS": "0-3"}
PBS = {
    "PBS_JOBID": "123.server", "PBS_JOBNAME": "bt-d", "PBS_QUEUE": "workq", "PBS_O_LOGNAME": "ada", "PBS_WALLTIME": "600",
}  # fmt: skip
LSF = {
    "LSB_JOBID": "9", "LSB_JOBINDEX": "0", "LSB_JOBNAME": "bt-d", "LSB_QUEUE": "batch", "LSFUSER": "ada",
    "LSB_PROJECT_NAME": "climate", "LSB_MCPU_HOSTS": "login1 1 n1 40 n2 40",
}  # fmt: skip


def test_account_and_quality_of_service_come_from_slurm():
    job = facts_of(SLURM | {"SLURM_JOB_ACCOUNT": "climate", "SLURM_JOB_QOS": "high"}, 0.0)
    assert (job.account, job.qos, job.partition) == ("climate", "high", "all")


def test_flux_says_number_and_user_and_its_script_adds_the_rest():
    job = facts_of(FLUX | {"VANI_JOB_NAME": "bt-d", "VANI_JOB_HOSTS": "n[1-4]", "VANI_JOB_TIME_LIMIT": "60"}, 10.0)
    assert (job.user, job.name, job.hosts, job.end_s) == ("1001", "bt-d", "n[1-4]", 70.0)


@pytest.mark.parametrize(
    ("text", "number"), [("ƒ2oLkTLb", "68484595712"), ("f2oLkTLb", "68484595712"), ("68484595712", "68484595712")]
)
def test_flux_job_number_is_decimal_in_any_notation(text, number):
    assert number_of({"FLUX_JOB_ID": text}) == number


def test_pbs_lists_its_hosts_in_a_file(tmp_path):
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn2\n")
    registered = variables_of(PBS | {"PBS_NODEFILE": str(nodes), "HOME": "/home/ada"})
    nodes.unlink()
    job = facts_of(registered, 100.0)
    assert (job.job, job.name, job.user, job.partition) == ("123", "bt-d", "ada", "workq")
    assert (job.hosts, job.end_s) == ("n1,n2", 700.0)
    assert variables_of(registered) == registered
    assert "HOME" not in registered


def test_pbs_without_its_hosts_file_leaves_them_unknown():
    assert facts_of(variables_of(PBS | {"PBS_NODEFILE": "/no/such/file"}), 0.0).hosts is None


def test_lsf_says_all_but_the_quality_of_service():
    job = facts_of(LSF, 0.0)
    assert (job.job, job.name, job.user, job.account, job.partition) == ("9", "bt-d", "ada", "climate", "batch")
    assert (job.hosts, job.qos) == ("n1,n2", None)
    assert facts_of({"LSB_JOBID": "9", "LSB_HOSTS": "n1 n1 n2"}, 0.0).hosts == "n1,n2"


@pytest.mark.parametrize(
    "environment", [{"PBS_JOBID": "12[3].server"}, {"LSB_JOBID": "12", "LSB_JOBINDEX": "3"}, {"VANI_JOB_ID": "12_3"}]
)
def test_jobs_of_an_array_have_numbers_of_their_own(environment):
    assert number_of(environment) == "12_3"


ARRAYS = [
    # Slurm numbers each job; one of them has the number of the array.
    ({"SLURM_JOB_ID": "105", "SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "4"}, "105", "101_4"),
    ({"SLURM_JOB_ID": "101", "SLURM_ARRAY_JOB_ID": "101", "SLURM_ARRAY_TASK_ID": "0"}, "101", "101_0"),
    ({"SLURM_JOB_ID": "105"}, "105", None),
    ({"PBS_JOBID": "123[4].server", "PBS_ARRAY_ID": "123[].server", "PBS_ARRAY_INDEX": "4"}, "123_4", "123_4"),
    ({"PBS_JOBID": "123.server"}, "123", None),
    ({"LSB_JOBID": "9", "LSB_JOBINDEX": "4"}, "9_4", "9_4"),
    ({"LSB_JOBID": "9", "LSB_JOBINDEX": "0"}, "9", None),
]


@pytest.mark.parametrize(("environment", "number", "array"), ARRAYS)
def test_the_array_of_a_job_is_known_by_its_number_and_the_index(environment, number, array):
    job = facts_of(variables_of(environment), 0.0)
    assert (job.job, job.array) == (number, array)


def test_batch_system_takes_precedence_over_its_script():
    own = {"VANI_JOB_ID": "1", "VANI_JOB_ACCOUNT": "mine", "VANI_JOB_USER": "eve", "VANI_JOB_NODES": "99"}
    job = facts_of(SLURM | {"SLURM_JOB_ACCOUNT": "climate"} | own, 0.0)
    assert (job.job, job.account, job.user, job.nodes) == ("4711", "climate", "ada", 4)


@pytest.mark.parametrize("number", ["", "0", "-1", "1e3", "4711\n", "../4711", "4" * 40, "٣", "4_", "4_5_6"])
def test_a_job_without_a_number_is_refused(number):
    with pytest.raises(InputError, match="SLURM_JOB_ID"):
        facts_of(SLURM | {"SLURM_JOB_ID": number}, 0.0)


def test_facts_missing_from_slurm_are_none():
    job = facts_of({"SLURM_JOB_ID": "1"}, 0.0)
    assert (job.name, job.user, job.nodes, job.hosts, job.end_s) == (None,) * 5


def test_time_limit_unknown_to_slurm_is_none():
    assert facts_of(SLURM | {"SLURM_JOB_END_TIME": "4294967294000"}, 0.0).end_s is None
    assert facts_of(SLURM | {"SLURM_JOB_END_TIME": "UNLIMITED"}, 0.0).end_s is None


def test_names_of_any_bytes_can_be_written_down():
    name = b"a\xff\n'\"$(x)".decode(errors="surrogateescape")
    found = facts_of(SLURM | {"SLURM_JOB_NAME": name}, 0.0).name
    assert found is not None
    assert found.encode().decode() == found
    assert len(facts_of(SLURM | {"SLURM_JOB_NAME": "x" * 5000}, 0.0).name or "") == 200
