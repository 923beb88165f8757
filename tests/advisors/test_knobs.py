"""Settings that `vani tune` can try, derived from the lines of the rules' own cases."""

from __future__ import annotations

import pytest
from test_cases import load_cases
from test_emitted_commands import advise_case

from vani.schema.advice import Knob
from vani.schema.tuned import Setting


def knobs(case: str) -> list[Knob]:
    (parameter,) = [parameter for parameter in load_cases() if parameter.id == case]
    return [knob for item in advise_case(*parameter.values).recommendations for knob in item.knobs]


def test_a_layout_is_a_knob_of_its_folder():
    (knob,) = knobs("LUS002-paths_are_quoted")
    assert (knob.kind, knob.folder) == ("layout", "/lustre/my $(data)")
    # Two targets for each of 8 processes, which may be on as many nodes, and the six each that did about as
    # well.
    assert [value["options"] for value in knob.values] == ["-c 16 -S 16M", "-c 48 -S 1M", "-c 8 -S 16M"]


def test_more_targets_are_tried_with_stripes_small_enough_to_use_all():
    (knob,) = knobs("LUS002-few_processes_with_long_runs_reach_more_targets_in_parts")
    # A file of 64 MiB has four stripes of 16 MiB; with 16 of 4 MiB some of 12 targets would have twice as many as others.
    assert [value["options"] for value in knob.values] == ["-c 4 -S 16M", "-c 12 -S 1M", "-c 2 -S 16M"]
    (knob,) = knobs("LUS002-a_target_for_each_gib_that_stays_in_memory")
    assert [value["options"] for value in knob.values] == ["-c 6 -S 32M", "-c 12 -S 32M", "-c 3 -S 32M"]


@pytest.mark.slow
def test_layouts_beyond_the_machine_or_the_site_are_not_tried():
    for case in ("LUS002-never_more_than_the_targets_there_are", "LUS002-never_more_than_the_site_allows"):
        (knob,) = knobs(case)
        counts = [int(value["options"].split()[1]) for value in knob.values]
        assert max(counts) == counts[0]
    (knob,) = knobs("LUS002-the_site_has_its_own_rule_for_large_files")
    assert len(knob.values) == 1


def test_hints_are_a_knob():
    (knob,) = knobs("MIO002-one_aggregator_for_each_stripe")
    assert (knob.kind, knob.values) == ("hints", [{"cb_nodes": "4", "cb_buffer_size": "4194304"}])


def test_hints_that_need_other_calls_are_no_knobs():
    assert knobs("MIO001-collective_calls_need_only_hints")
    assert knobs("MIO001-interleaved_and_independent") == []


@pytest.mark.slow
def test_setting_that_a_trial_cannot_judge_is_no_knob():
    # Disabled locks, and output that disappears with its node.
    assert knobs("BB004-unifyfs") == []
    locking = [parameter.id for parameter in load_cases() if parameter.id.startswith("MIO004")]
    assert locking
    assert all(knobs(case) == [] for case in locking)


def test_the_pattern_of_a_beegfs_is_a_knob():
    (knob,) = knobs("BEE001-more_nodes_than_targets_of_the_file")
    assert (knob.kind, knob.folder) == ("layout", "/b/run")
    numbers = ("16", "32", "8")
    assert [value["command"] for value in knob.values] == [
        f"beegfs-ctl --setpattern --numtargets={n} --chunksize=1M" for n in numbers
    ]
    assert [setting.layout for setting in settings(knob)] == [value["command"] for value in knob.values]


def test_io_nodes_are_a_knob_if_a_variable_sets_their_number():
    (knob,) = knobs("FWD001-a_variable_sets_the_number")
    assert knob.kind == "environment"
    assert [*knob.values[0]] == ["IO_NODES"]


def settings(knob: Knob) -> list[Setting]:
    return [Setting.of_knob(knob, value) for value in knob.values]
