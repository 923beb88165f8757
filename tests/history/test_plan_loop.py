"""From logs to known jobs, and from ended jobs to the quality of their plans."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from tests.history.logs import NOVEMBER, write_log
from vani import centre
from vani.centre.plan.outcome import _logs
from vani.centre.plan.running_jobs import known_file, known_job
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import JobFacts, State
from vani.errors import InputError

NOW = datetime.fromtimestamp(NOVEMBER + 10 * 86400, UTC)


@pytest.fixture
def history(tmp_path):
    for number in range(5):
        write_log(tmp_path / "logs", number=number + 1, day=number, seconds=10.0 + number)
    centre.history_add(tmp_path / "logs", db=tmp_path / "h.sqlite", totals=True, workers=1, judge=0)
    return tmp_path / "h.sqlite"


def learn(history, folder, **options):
    return centre.plan_learn(history, folder, now=NOW, **{"processes_per_node": 2} | options)


def test_a_document_is_what_the_hook_looks_up(history, tmp_path):
    (document,) = learn(history, tmp_path / "known").documents
    facts = JobFacts("7", 0.0, name="solver", user="u1", nodes=2)
    assert known_file(facts, tmp_path / "known") == document.path == tmp_path / "known" / "u1" / "solver.yaml"
    planned = known_job(facts, document.path).planned
    assert (planned.nodes, planned.processes, planned.runs) == (2, 4, 5)
    assert planned.io_s.median == 12.0
    assert [creation.path for creation in planned.creations] == [f"/scratch/u1/solver/out.{n}" for n in range(4)]
    assert known_job(JobFacts("7", 0.0, name="solver", nodes=4), document.path).planned.io_s is None


def test_unchanged_history_writes_and_removes_nothing(history, tmp_path):
    (document,) = learn(history, tmp_path / "known").documents
    other = document.jobs.jobs[0].model_copy(update={"name": "8 nodes", "nodes": 8})
    Jobs(jobs=[*document.jobs.jobs, other]).save(document.path)
    first = learn(history, tmp_path / "known").documents[0]
    before = first.path.read_bytes()
    again = learn(history, tmp_path / "known").documents[0]
    assert not again.is_new
    assert again.path.read_bytes() == before
    assert [job.nodes for job in again.jobs.jobs] == [2, 8]


def test_document_written_by_a_person_is_not_changed(history, tmp_path):
    place = tmp_path / "known" / "u1" / "solver.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"schema": "vani.jobs/1", "jobs": [{"name": "solver", "nodes": 2}]}))
    learned = learn(history, tmp_path / "known")
    assert learned.documents == ()
    assert "a person wrote it" in learned.left[0].reason
    assert len(Jobs.load(place).jobs) == 1


def test_runs_with_unknown_nodes_are_skipped(history, tmp_path):
    learned = learn(history, tmp_path / "known", processes_per_node=None)
    assert learned.documents == ()
    assert "number of nodes of 5 runs is unknown" in learned.left[0].reason


def test_old_applications_are_skipped_and_hashes_refused(history, tmp_path):
    assert centre.plan_learn(history, tmp_path / "known", days=1, now=NOW).documents == ()
    centre.history_anonymise(tmp_path / "key", db=history)
    with pytest.raises(InputError, match="hashes, not names"):
        learn(history, tmp_path / "known")


@pytest.fixture
def ended(tmp_path):
    """A state in which job 7, with an expected time of 5 s, has ended."""
    state = State(tmp_path / "state")
    state.ended.mkdir()
    forward = {
        "io_nodes": 0, "policy": "mckp", "objective": "sum", "floor": 0.0, "direct": True, "rounding": "half-up",
        "nodes_per_io_node": None,
    }  # fmt: skip
    layout = {
        "stripe_count": 8, "stripe_size": None, "before": 1, "source": "estimated", "files": 1, "osts": [],
        "osts_reason": "", "database": None, "hints": None,
    }  # fmt: skip
    plan = JobPlan.model_validate(
        {
            "version": "", "inputs": [], "expected": None, "unplaced": [], "over_capacity": [], "no_data": [], "notes": [],
            "job": {"id": "7", "name": "bt", "user": None, "nodes": 2, "hosts": None}, "forward": forward, "running": 1,
            "access": "direct", "io_nodes": [], "allotment": None, "map": None, "layout": layout,
            "io_s": {"seconds": 5.0, "low": 4.0, "high": 6.0, "before": 9.0, "method": "a guess"},
        }
    )  # fmt: skip
    plan.save(state.ended / "7.yaml")
    return state


def test_measured_time_of_a_job_is_stored_next_to_the_expected_time(ended, tmp_path):
    write_log(tmp_path / "logs", number=7, seconds=10.0)
    (outcome,) = centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs")
    row = outcome.row
    assert (row.measured, row.expected, row.before, row.stripe_count, row.changed) == (10.0, 5.0, 9.0, 8, True)
    assert centre.history_list(db=tmp_path / "h.sqlite").runs == 1
    (score,) = centre.plan_scored(tmp_path / "h.sqlite")
    assert (score.ratio, score.within, score.gain, score.worse) == (2.0, 0.0, 0.9, 1)
    assert centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs") == []


def test_the_nodes_and_the_name_of_a_planned_job_are_learned(ended, tmp_path):
    write_log(tmp_path / "logs", number=7)
    centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs")
    (document,) = centre.plan_learn(tmp_path / "h.sqlite", tmp_path / "known", now=NOW).documents
    assert document.path.name == "bt.yaml"
    assert [(job.nodes, job.processes) for job in document.jobs.jobs] == [(2, 4)]


def test_logs_are_in_folders_of_days_with_the_number_of_their_job(ended, tmp_path):
    day = datetime.now(UTC)
    (tmp_path / "logs").mkdir()
    write_log(tmp_path / "logs" / f"{day.year}" / f"{day.month}" / f"{day.day}", number=7, seconds=3.0)
    write_log(tmp_path / "logs", number=77, seconds=9.0)
    write_log(tmp_path / "logs", number=17, seconds=9.0)
    (outcome,) = centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs", job="7")
    assert outcome.row.measured == 3.0


def test_log_of_an_array_job_is_found_by_its_time(ended, tmp_path):
    """Under PBS and LSF, all logs of an array have the array's number, because Darshan reads the leading digits."""
    plan = JobPlan.load(ended.ended / "7.yaml")
    for index, (begin, end) in enumerate([(0, 110), (100, 210), (300, 410), (300, 412)], start=1):
        began = {"id": f"5_{index}", "array": f"5_{index}", "start": NOVEMBER + begin}
        place = ended.ended / f"5_{index}.yaml"
        plan.model_copy(update={"job": plan.job.model_copy(update=began)}).save(place)
        os.utime(place, (NOVEMBER + end, NOVEMBER + end))
    (ended.ended / "7.yaml").unlink()
    for number, (start, seconds) in enumerate([(5, 11.0), (105, 12.0), (304, 13.0), (306, 14.0)], start=1):
        log = write_log(tmp_path / "logs", number=number, seconds=seconds, job_id=5, start_s=NOVEMBER + start)
        log.rename(log.with_name(f"u1_solver_id5-{number}_11-1-100-{number}_1.darshan"))
    write_log(tmp_path / "logs", number=54, seconds=9.0, start_s=NOVEMBER + 5)
    later = datetime.fromtimestamp(NOVEMBER + 1000, UTC)
    first, second, *beside = centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs", now=later)
    assert (first.job, first.row.measured, second.row.measured) == ("5_1", 11.0, 12.0)
    assert [outcome.row for outcome in beside] == [None, None]
    late = later + timedelta(days=2)
    left = centre.plan_outcome(tmp_path / "h.sqlite", ended.folder, tmp_path / "logs", now=late)
    assert {outcome.row.reason for outcome in left} == {
        "2 logs of its job array are from its time, so its own is not known"
    }


@pytest.mark.parametrize("name", ["id12-7-1", "run.5_3", "run.5[3]", "run.12"])
def test_logs_and_traces_of_an_array_of_slurm_have_the_jobs_number_or_the_arrays(ended, tmp_path, name):
    plan = JobPlan.load(ended.ended / "7.yaml")
    job = plan.job.model_copy(update={"id": "12", "array": "5_3", "start": NOVEMBER + 0.5})
    plan = plan.model_copy(update={"job": job})
    (tmp_path / "logs").mkdir()
    for other in (f"u1_solver_{name}.darshan" if "id" in name else name, "run.5_31", "run.15_3", "u1_a_id5-1-1.darshan"):
        (tmp_path / "logs" / other).touch()
    own = [path.name for path in _logs(tmp_path / "logs", plan, NOVEMBER + 10.0)]
    assert own == [f"u1_solver_{name}.darshan" if "id" in name else name]


def test_job_without_a_log_waits_a_day_and_is_stored_without_a_figure(ended, tmp_path):
    (tmp_path / "logs").mkdir()
    arguments = (tmp_path / "h.sqlite", ended.folder, tmp_path / "logs")
    assert centre.plan_outcome(*arguments)[0].row is None
    (outcome,) = centre.plan_outcome(*arguments, now=datetime.now(UTC) + timedelta(days=2))
    assert (outcome.row.measured, outcome.row.reason) == (None, "no log or trace of it was found")


def test_damaged_log_gives_no_outcome(ended, tmp_path):
    path = write_log(tmp_path / "logs", number=7)
    path.write_bytes(path.read_bytes()[:300])
    (outcome,) = centre.plan_outcome(
        tmp_path / "h.sqlite", ended.folder, tmp_path / "logs", now=datetime.now(UTC) + timedelta(days=2)
    )
    assert outcome.row.reason.startswith("its log cannot be used")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_log_of_another_user_is_ignored(ended, tmp_path):
    path = ended.ended / "7.yaml"
    plan = JobPlan.load(path)
    plan.model_copy(update={"job": plan.job.model_copy(update={"user": "daemon"})}).save(path)
    log = write_log(tmp_path / "logs", number=7)
    os.chown(log, 65534, 65534)
    arguments = (tmp_path / "h.sqlite", ended.folder, tmp_path / "logs")
    assert centre.plan_outcome(*arguments)[0].row is None
    os.chown(log, 1, 1)
    assert centre.plan_outcome(*arguments)[0].row.measured == 10.0


def test_planned_jobs_are_hidden_removed_and_carried_along(ended, tmp_path):
    write_log(tmp_path / "logs", number=7)
    db = tmp_path / "h.sqlite"
    centre.plan_outcome(db, ended.folder, tmp_path / "logs")
    centre.history_export(tmp_path / "all.gz", db=db)
    centre.history_import(tmp_path / "all.gz", db=tmp_path / "copy.sqlite")
    assert centre.plan_scored(tmp_path / "copy.sqlite") == centre.plan_scored(db)
    centre.history_anonymise(tmp_path / "key", db=tmp_path / "copy.sqlite")
    assert centre.plan_scored(tmp_path / "copy.sqlite")[0].user.startswith("user-")
    centre.history_remove(user="u1", db=db)
    assert centre.plan_scored(db) == []
