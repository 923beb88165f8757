"""The model of a large cluster: what it must say in cases that can be computed by hand."""

from __future__ import annotations

import json
import math

import pytest

from benchmarks.scaling_model import CAP, Machine, Measured, StageCost, Workload, predict, saturates
from benchmarks.scaling_page import page_with

FREE = StageCost(
    seconds_per_call=0.0,
    bytes_per_call=0.0,
    opens_per_part=0.0,
    bytes_per_partial=0.0,
    bytes_per_file=0.0,
    capped_per_file=0.0,
    combine_s_per_byte=0.0,
    constants_per_file=0.0,
    capped_constants_per_file=0.0,
)
# A thousand parts of a million calls.
TRACE = Workload(calls=1000 * 2**20, processes=10_000, files=1000)


def measured(stage: str = "survey", *, task: float = 0.0, **costs: float) -> Measured:
    return Measured(
        stages={stage: StageCost(**{**vars(FREE), **costs})},
        scheduler_s_per_task=task,
        bytes_per_task=100,
        client_s_per_file=0.0,
        client_s_per_part=0.0,
        client_s=0.0,
    )


def seconds(costs: Measured, workers: float, machine: Machine | None = None) -> float:
    return sum(t.seconds for t in predict(costs, TRACE, workers, machine or Machine()))


def test_computing_is_shared_among_all_workers():
    costs = measured(seconds_per_call=1e-6)
    assert seconds(costs, 1) == pytest.approx(1048.576)
    assert seconds(costs, 100) == pytest.approx(10.48576)


def test_bandwidth_of_the_file_system_is_not():
    costs = measured(seconds_per_call=1e-6, bytes_per_call=100)
    terms = predict(costs, TRACE, 10_000, Machine(file_bandwidth=10e9))
    assert sum(t.seconds for t in terms) == pytest.approx(10.48576)
    assert saturates(terms) == ("files", pytest.approx(1.0))


def test_a_decoding_task_is_one_of_the_scheduler():
    assert seconds(measured("decode", task=0.001), 1000) == pytest.approx(1.0)


def test_a_tree_adds_its_nodes():
    # 1000 leaves, then 125, 16, 2 and 1.
    assert seconds(measured("survey", task=0.001), 1000) == pytest.approx(1.144)


def test_few_workers_get_few_tasks_however_many_parts_there_are():
    # 16 leaves, 2 nodes, 1 root.
    assert seconds(measured("survey", task=0.001), 1) == pytest.approx(0.019)


def test_opening_files_is_work_of_the_metadata_servers():
    terms = predict(measured(opens_per_part=2), TRACE, 1000, Machine(opens_per_s=100))
    assert terms[0].limit == "opens"
    assert terms[0].seconds == pytest.approx(20.0)


def test_the_last_combinations_wait_for_each_other():
    # Each of a thousand leaves has the megabyte of its own file; levels take in 8, 64, 512 MB, and then all of it.
    costs = measured(bytes_per_file=1e6, combine_s_per_byte=1e-8)
    (survey, _) = predict(costs, TRACE, 1000, Machine())
    assert survey.result == pytest.approx(1e9)
    assert survey.after["to the client"] == pytest.approx(1.0)
    assert survey.after["combine"] == pytest.approx((8e6 + 64e6 + 512e6 + 1e9) * 1e-8)


def test_what_is_given_up_beyond_a_bound_does_not_grow():
    costs = measured(capped_per_file=1e6)
    assert predict(costs, TRACE, 1000, Machine())[0].result == pytest.approx(CAP)
    costs = measured(capped_constants_per_file=1e6)
    network = predict(costs, TRACE, 1000, Machine())[0].beside["network"]
    assert network == pytest.approx(CAP * math.log2(1001) / Machine().link)


def test_more_workers_help_until_something_else_is_full():
    costs = measured(seconds_per_call=3e-7, task=0.001, bytes_per_call=5.0)
    times = [seconds(costs, w) for w in (1, 10, 100, 1000)]
    assert times == sorted(times, reverse=True)
    assert saturates(predict(costs, TRACE, 10, Machine()))[0] == "compute"
    assert saturates(predict(costs, TRACE, 10_000, Machine()))[0] == "scheduler"


def test_costs_survive_as_a_document():
    costs = measured(seconds_per_call=3e-7, most_bytes=5.0)
    assert Measured.of(json.loads(json.dumps(costs.document()))) == costs


def test_tables_go_between_the_marks_of_the_page():
    page = "before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n"
    assert page_with(page, r"new \1") == page.replace("old", r"new \1")
    with pytest.raises(ValueError, match="needs one line"):
        page_with("nothing", "new")
