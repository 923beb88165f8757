"""Advice on the default layout of a file system, from a replay of its jobs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

from tests.history.test_story import NOVEMBER, a_run
from vani import centre
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store
from vani.centre.prediction.creations.series import Creations, pack_creations
from vani.centre.service.advise import advice_as_text
from vani.centre.service.layouts import Component, Rates, as_recorded, fixed_rules, job_of, replayed
from vani.units import KiB, MiB

RATES = Rates(8, 100e6, 1e-3, 0.0, 1e-3, 5e-4, 1e9)
ONE = (Component(None, 1, MiB),)


def created(sizes, ranks, stripes, name="/scratch/u1/out"):
    count = len(sizes)
    paths = tuple(f"{name}/{number}" for number in range(count))
    return Creations(np.array(sizes), np.array(ranks), np.full(count, stripes), paths)


def a_job(number, made, *, processes=4, submitted=NOVEMBER, runtime_s=1000.0, slowest_s=1.0, writes=64, **more):
    written = int(made.sizes.sum())
    run = a_run(
        number, processes=processes, submitted=submitted, runtime_s=runtime_s, slowest_s=slowest_s, writes=writes,
        bytes_read=0, bytes_written=written, mount="/scratch", write_s=slowest_s, **more,
    )
    return run, made


def replay(*jobs, layout=None, rates=RATES):
    some = [job_of(run, made, NOVEMBER, set()) for run, made in jobs]
    return replayed(some, rates, (lambda *_: layout) if layout else as_recorded, ONE)


def test_file_on_one_target_takes_its_time_there_and_on_all_an_eighth():
    job = a_job(1, created([800 * MiB], [-1], 1), writes=200)
    (narrow,), (wide,) = replay(job), replay(job, layout=(Component(None, -1, MiB),))
    assert narrow == pytest.approx(800 * MiB / 100e6, rel=0.1)
    assert narrow / wide == pytest.approx(8, rel=0.4)


def test_locks_of_a_shared_file_cost_time_and_those_of_own_files_none():
    shared, own = a_job(1, created([64 * MiB], [-1], 1)), a_job(1, created([16 * MiB] * 4, range(4), 1))
    locked = Rates(**{**RATES.__dict__, "lock_s": 0.05})
    assert replay(shared, rates=locked)[0] > 2 * replay(shared)[0]
    assert replay(own, rates=locked)[0] == pytest.approx(replay(own)[0])


def test_wide_small_files_cost_the_metadata_server():
    small = a_job(1, created([KiB] * 400, [n % 4 for n in range(400)], 1), writes=400)
    assert replay(small, layout=(Component(None, -1, MiB),))[0] > 1.5 * replay(small)[0]
    progressive = (Component(MiB, 1, MiB), Component(None, -1, MiB))
    assert replay(small, layout=progressive)[0] == pytest.approx(replay(small)[0], rel=0.05)


def test_two_jobs_on_one_target_wait_for_each_other():
    job = a_job(1, created([80 * MiB], [0], 1), processes=1)
    alone, together = replay(job), replay(job, a_job(2, created([80 * MiB], [0], 1), processes=1), rates=Rates(
        1, *list(RATES.__dict__.values())[1:]
    ))  # fmt: skip
    assert together == pytest.approx([2 * alone[0]] * 2, rel=0.05)


def test_rules_need_no_more_targets_than_there_are():
    assert [rule.name for rule in fixed_rules(4, MiB)] == [
        "1 stripe", "2 stripes", "all stripes", "progressive, 1 to 1 MiB, then all",
    ]  # fmt: skip
    assert fixed_rules(40, MiB)[-1].options == "-E 1M -c 1 -S 1M -E -1 -c 16 -S 1M"


def stored(path, jobs):
    with Store(path).writing(make=True) as connection:
        write.add_runs(connection, [run for run, _ in jobs])
        write.put_creations(connection, {run.digest: (len(made), pack_creations(made)) for run, made in jobs})
    return path


def advised(tmp_path, jobs, **more):
    db = stored(tmp_path / "h.sqlite", jobs)
    return centre.centre_advice(db=db, mount="/scratch", targets=8, **more)


def test_where_wide_is_slower_the_advice_is_narrow(tmp_path):
    """A default of all targets, and jobs that create small files: each object of a file costs 2 ms."""
    draw, jobs = np.random.default_rng(3), []
    for number in range(40):
        stripes, files = (1 if number % 4 == 0 else 8), int(draw.integers(40, 80))
        seconds = files * (0.002 + 0.002 * (stripes - 1)) * float(draw.lognormal(0, 0.05))
        made = created([64 * KiB] * files, [n % 4 for n in range(files)], stripes)
        jobs.append(
            a_job(number, made, submitted=NOVEMBER + 3000 * number, runtime_s=seconds + 500, slowest_s=seconds, writes=files)
        )
    layout = advised(tmp_path, jobs, stripe_count=-1).layout
    assert layout.options is not None
    assert layout.options.startswith(("-c 1 ", "-E 1M -c 1 "))
    assert layout.low > 1.0
    by_name = {rule.rule: rule for rule in layout.rules}
    assert by_name["all stripes"].new_files == pytest.approx(1.0, abs=0.1)
    assert by_name["1 stripe"].new_files > 1.1


def test_where_nothing_gains_the_advice_is_to_leave_it(tmp_path):
    """Each process writes a file of its own, as fast as it can compute what it writes: targets do not matter."""
    draw, jobs = np.random.default_rng(4), []
    for number in range(40):
        size = int(draw.integers(20, 40)) * MiB
        seconds = size / 20e6 * float(draw.lognormal(0, 0.05))
        made = created([size] * 4, range(4), 1)
        jobs.append(
            a_job(number, made, submitted=NOVEMBER + 3000 * number, runtime_s=seconds + 500, slowest_s=seconds, writes=160)
        )
    advice = advised(tmp_path, jobs)
    assert advice.layout.options is None
    assert "leave it" in advice_as_text(advice)


def test_few_jobs_give_no_advice_with_the_reason(tmp_path):
    advice = advised(tmp_path, [a_job(1, created([MiB], [0], 1))])
    assert advice.layout is None
    assert advice_as_text(advice).startswith("No advice on layouts: 1 job on /scratch can be replayed; 20 are needed.")


def test_files_whose_names_were_used_before_are_counted_as_kept():
    made, known = created([MiB] * 2, range(2), 1), {"/scratch/u1/out/0"}
    job = job_of(*a_job(1, made), NOVEMBER, known)
    assert job.renewed == 0.5
    assert known == {"/scratch/u1/out/0", "/scratch/u1/out/1"}


def test_replay_that_does_not_explain_the_times_advises_nothing(tmp_path):
    """Times that have nothing to do with the bytes, the files or the targets."""
    draw, jobs = np.random.default_rng(6), []
    for number in range(40):
        made = created([int(draw.integers(20, 400)) * MiB] * 4, range(4), 1)
        seconds = float(draw.lognormal(0, 3))
        jobs.append(
            a_job(number, made, submitted=NOVEMBER + 3000 * number, runtime_s=seconds + 500, slowest_s=seconds, writes=160)
        )
    advice = advised(tmp_path, jobs)
    assert advice.layout.error > 2
    assert (advice.layout.options, advice.layout.folders, advice.layout.hook_is_better) == (None, [], False)
    assert "leave it. The replay does not explain the measured times" in advice_as_text(advice)
