"""Settings that `vani tune` can try, derived from the lines of the rules' own cases."""

from __future__ import annotations

import pytest
from test_cases import load_cases
from test_emitted_commands import advise_case

from vani.schema.advice import TunableSetting
from vani.schema.tuned import Setting


def settings_of(case: str) -> list[TunableSetting]:
    (parameter,) = [parameter for parameter in load_cases() if parameter.id == case]
    return [tunable for item in advise_case(*parameter.values).recommendations for tunable in item.settings]


def test_layout_can_be_tried_in_its_folder():
    (tunable,) = settings_of("LUS002-paths_are_quoted")
    assert (tunable.kind, tunable.folder) == ("layout", "/lustre/my $(data)")
    # Two targets for each of 8 processes, which may be on as many nodes.
    assert [value["options"] for value in tunable.values] == ["-c 16 -S 16M", "-c 32 -S 8M", "-c 8 -S 16M"]


def test_more_targets_are_tried_with_stripes_small_enough_to_use_all():
    (tunable,) = settings_of("LUS002-few_processes_with_long_runs_reach_more_targets_in_parts")
    # A file of 64 MiB has four stripes of 16 MiB, and eight of 8 MiB.
    assert [value["options"] for value in tunable.values] == ["-c 4 -S 16M", "-c 8 -S 8M", "-c 2 -S 16M"]


@pytest.mark.slow
def test_layouts_beyond_the_machine_or_the_site_are_not_tried():
    for case in ("LUS002-never_more_than_the_targets_there_are", "LUS002-never_more_than_the_site_allows"):
        (tunable,) = settings_of(case)
        counts = [int(value["options"].split()[1]) for value in tunable.values]
        assert max(counts) == counts[0]
    (tunable,) = settings_of("LUS002-the_site_has_its_own_rule_for_large_files")
    assert len(tunable.values) == 1


def test_hints_can_be_tried():
    (tunable,) = settings_of("MIO002-one_aggregator_for_each_stripe")
    assert (tunable.kind, tunable.values) == ("hints", [{"cb_nodes": "4", "cb_buffer_size": "4194304"}])


def test_hints_that_need_other_calls_cannot_be_tried():
    assert settings_of("MIO001-collective_calls_need_only_hints")
    assert settings_of("MIO001-interleaved_and_independent") == []


@pytest.mark.slow
def test_setting_that_a_trial_cannot_judge_is_not_offered():
    # Disabled locks, and output that disappears with its node.
    assert settings_of("BB004-unifyfs") == []
    locking = [parameter.id for parameter in load_cases() if parameter.id.startswith("MIO004")]
    assert locking
    assert all(settings_of(case) == [] for case in locking)


def test_beegfs_pattern_can_be_tried():
    (tunable,) = settings_of("BEE001-more_nodes_than_targets_of_the_file")
    assert (tunable.kind, tunable.folder) == ("layout", "/b/run")
    numbers = ("16", "32", "8")
    assert [value["command"] for value in tunable.values] == [
        f"beegfs-ctl --setpattern --numtargets={n} --chunksize=1M" for n in numbers
    ]
    assert [setting.layout for setting in trials(tunable)] == [value["command"] for value in tunable.values]


def test_io_nodes_can_be_tried_if_a_variable_sets_their_number():
    (tunable,) = settings_of("FWD001-a_variable_sets_the_number")
    assert tunable.kind == "environment"
    assert [*tunable.values[0]] == ["IO_NODES"]


def trials(tunable: TunableSetting) -> list[Setting]:
    return [Setting.of_tunable(tunable, value) for value in tunable.values]
