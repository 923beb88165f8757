"""Profiles of invented Darshan records: layouts, mounts, nodes, recorded calls and heat maps."""

from __future__ import annotations

import numpy as np
import pytest
from darshan_records import calls, components, log, posix, profiled
from hypothesis import given
from hypothesis import strategies as st

import vani
from vani.advisors.small_requests import small_at_least, usual_at_most, usual_text
from vani.analyzers.entities.io_stats import _proven
from vani.readers.darshan.records import Module, Records
from vani.schema.document import dumps
from vani.schema.profile import Profile, Sizes
from vani.units import MiB

FOUR = calls((0, 0, 1.0, 1.5), (1, 1, 1.0, 1.5), (0, 2, 5.0, 5.5), (1, 3, 5.25, 5.75))


# Layouts


def test_file_keeps_the_stripes_it_had_on_lustre():
    (file,) = profiled(log(layouts=components((4, MiB, 0, -1)))).files
    assert (file.stripe_count, file.stripe_size, file.components) == (4, MiB, 1)


def test_composite_layout_counts_the_component_at_the_end_of_the_file():
    layout = components((1, MiB, 0, MiB), (8, 4 * MiB, MiB, 64 * MiB), (32, 16 * MiB, 64 * MiB, -1))
    (file,) = profiled(log(layouts=layout)).files
    assert (file.stripe_count, file.stripe_size, file.components) == (8, 4 * MiB, 3)


def test_uncounted_stripes_are_null():
    (file,) = profiled(log(layouts=components((-1, -1, 0, -1)))).files
    assert (file.stripe_count, file.stripe_size, file.components) == (None, None, 1)


def test_profile_without_layouts_omits_the_key_with_a_reason():
    profile = profiled(log())
    assert "stripe_count" not in dumps(profile).split("provenance:")[0]
    assert profile.provenance["files.stripe_count"] == "the log has no records of Lustre"


def test_advice_names_the_stripes_that_the_file_had_not_the_default():
    written = posix(WRITES=4096, BYTES_WRITTEN=4096 * MiB, MAX_BYTE_WRITTEN=4096 * MiB - 1, OPENS=64, F_WRITE_TIME=64 * 50.0,
                    F_SLOWEST_RANK_TIME=50.0, SLOWEST_RANK=0, F_WRITE_START_TIMESTAMP=1.0, F_WRITE_END_TIMESTAMP=51.0,
                    F_OPEN_START_TIMESTAMP=0.5, F_CLOSE_END_TIMESTAMP=52.0, CONSEC_WRITES=4032, SEQ_WRITES=4032)  # fmt: skip
    changes = {"ranks": 64, "end_s": 200.0, "modules": {"POSIX": written}}

    def striped(stripes: int) -> vani.schema.advice.Advice:
        layout = components((stripes, 2 * MiB, 0, -1))
        return vani.advise(profiled(log(layouts=layout, **changes)), system="generic-lustre")

    advice = next(one for one in striped(2).recommendations if one.rule == "LUS002")
    assert advice.current == {"stripe_count": 2, "stripe_size": 2 * MiB}
    assert "which is on 2 targets" in advice.reason
    assert any(one.attribute == "files[0].stripe_count" and one.value == 2 for one in advice.evidence)
    wanted = advice.recommended["stripe_count"]
    again = [one for one in striped(wanted).recommendations if one.rule == "LUS002"]
    assert all(one.current["stripe_count"] == wanted == one.recommended["stripe_count"] for one in again)


# Mounts and nodes


def test_mount_table_gives_the_file_system_type():
    mounts = [("/lustre", "lustre"), ("/", "ext4"), ("/lustre/run/deep", "nfs")]
    profile = profiled(log(mounts=mounts))
    assert (profile.storage.shared.type, profile.storage.shared.dir) == ("lustre", "/lustre")
    assert profile.provenance["storage.shared.type"] == "by the mount table of the logs"


def test_file_only_at_the_root_is_no_evidence():
    # Long tables are truncated.
    assert profiled(log(mounts=[("/", "ext4")])).storage.shared.type is None


def test_nodes_are_known_if_every_process_names_its_node():
    assert profiled(log(calls=FOUR, hosts=("a", "b", "a", "b"))).job.nodes == 2
    one = calls((0, 0, 1.0, 1.5))
    assert profiled(log(calls=one, hosts=("a",))).job.nodes is None


# Recorded calls


def test_kept_calls_give_busy_times_sizes_and_phases():
    profile = profiled(log(calls=FOUR, hosts=("a",) * 4))
    io = profile.workflow.io
    assert io.busy_s.write == pytest.approx(0.5 + 0.75)
    assert io.transfer_size.write.p50 == MiB
    assert [(p.start_s, p.end_s, p.repeats.count) for p in profile.phases] == [(1.0, 5.75, 2)]
    assert profile.files[0].writers == 2
    assert profile.apps[0].balance.busiest_bytes == 2 * MiB


def test_counts_bound_the_figures_if_a_call_is_missing():
    profile = profiled(log(calls={n: c[:3] for n, c in FOUR.items()}, hosts=("a",) * 3))
    low, high = profile.bounds["workflow.io.busy_s.write"]
    # Three of four calls: their union is a lower bound, and the total time an upper one.
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(2.0)
    assert profile.phases is None


@pytest.mark.parametrize(
    "damage",
    [{"start": np.array([np.nan] * 4)}, {"end": np.array([0.5] * 4)}, {"rank": np.array([0, 1, 0, 7])},
     {"writes": np.array([1, 1, 1, -1])}, {"writes": np.array([1, 1, 1, 1 << 40])}, {"length": np.full(4, -5)}],
    ids=["no number", "end before start", "no such rank", "negative", "more than there are", "negative size"],
)  # fmt: skip
def test_impossible_calls_are_left_out(damage):
    profile = profiled(log(calls=FOUR | damage, hosts=("a",) * 4))
    assert profile.phases is None
    assert profile.workflow.io.ops.write == 4


# Inputs of rules


def sizes(**histogram: int) -> Sizes:
    return Sizes(min=None, p50=None, p90=None, max=None, common=[], histogram=histogram)


def test_the_usual_size_is_at_most_the_end_of_the_bin_of_the_median():
    assert usual_at_most(sizes(**{"0_100": 3, "100_1K": 3, "1K_10K": 1})) == 1024
    assert usual_at_most(sizes(**{"0_100": 1, "1G_PLUS": 3})) is None
    assert usual_at_most(sizes(**{"0_100": 3, "unknown": 4})) is None
    assert usual_text(sizes(**{"0_100": 3, "100_1K": 4})) == "at most 1.02 kB"


def test_the_mean_of_a_stream_proves_how_many_of_its_requests_are_small():
    streams = posix(READS=1000, BYTES_READ=4 * MiB, OPENS=1)
    streams = Module(
        streams.id, streams.rank, {n.replace("POSIX", "STDIO"): c for n, c in streams.counters.items()}, {}, "STDIO"
    )
    io = profiled(log(modules={"STDIO": streams})).workflow.io
    assert io.transfer_size.read.histogram == {"unknown": 1000}
    assert small_at_least(io, 64 << 10, reads=True) == pytest.approx(1 - 4 * MiB / 1000 / (64 << 10))


def test_first_operation_of_a_process_has_the_class_of_its_successors():
    # Four processes write eight adjacent blocks each; those of three start beyond byte 0.
    record = {"WRITES": 32, "BYTES_WRITTEN": 32, "CONSEC_WRITES": 28, "SEQ_WRITES": 31}
    pattern = profiled(log(ranks=4, modules={"POSIX": posix(**record)})).workflow.io.access_pattern
    assert (pattern.consecutive, pattern.sequential) == (1.0, 0.0)


def test_jumps_to_and_fro_are_random_in_both_directions():
    record = {"WRITES": 101, "BYTES_WRITTEN": 101, "SEQ_WRITES": 50}
    pattern = profiled(log(ranks=1, modules={"POSIX": posix(**record)})).workflow.io.access_pattern
    assert pattern.random > 0.9


# Several runs


def writing(exe: str, start_s: float) -> Records:
    record = posix(
        WRITES=4, BYTES_WRITTEN=400, F_WRITE_TIME=1.0, F_WRITE_START_TIMESTAMP=1.0, F_WRITE_END_TIMESTAMP=2.0
    )
    return log(exe=exe, start_s=start_s, end_s=start_s + 10, modules={"POSIX": record})


def reading(exe: str, start_s: float) -> Records:
    record = posix(
        READS=4, BYTES_READ=300, F_READ_TIME=1.0, F_READ_START_TIMESTAMP=1.0, F_READ_END_TIMESTAMP=2.0
    )
    return log(exe=exe, start_s=start_s, end_s=start_s + 10, modules={"POSIX": record})


def test_a_file_that_a_later_log_reads_links_the_apps_and_is_intermediate():
    profile = profiled(writing("make", 100.0), reading("use", 200.0))
    (link,) = profile.workflow.app_dependencies
    assert (link.producer, link.consumer, link.files) == ("make", "use", 1)
    assert (link.bytes_written, link.bytes_read) == (400, 300)
    assert profile.files[0].role == "intermediate"
    assert profile.dataset.roles == {"intermediate": 1}


def test_file_read_before_it_was_written_links_no_apps():
    profile = profiled(reading("use", 100.0), writing("make", 200.0))
    assert profile.workflow.app_dependencies == []
    assert profile.files[0].role is None


def test_a_later_log_of_the_same_app_makes_a_file_intermediate():
    profile = profiled(writing("app", 100.0), reading("app", 200.0))
    assert profile.workflow.app_dependencies == []
    assert profile.files[0].role == "intermediate"


# One record of all ranks


def test_slowest_process_spent_its_time_on_writes_except_the_time_of_all_on_other_calls():
    record = {"WRITES": 40, "BYTES_WRITTEN": 40, "F_WRITE_TIME": 3.0, "F_META_TIME": 0.5, "SLOWEST_RANK": 1,
              "F_SLOWEST_RANK_TIME": 2.9}  # fmt: skip
    profile = profiled(log(modules={"POSIX": posix(**record)}))
    assert profile.workflow.io.busy_s.write == pytest.approx(2.4)


def test_process_that_moved_all_bytes_is_the_only_writer():
    record = {"WRITES": 40, "BYTES_WRITTEN": 40, "SLOWEST_RANK": 1, "SLOWEST_RANK_BYTES": 40}
    assert profiled(log(ranks=4, modules={"POSIX": posix(**record)})).files[0].writers == 1
    record["SLOWEST_RANK_BYTES"] = 39
    assert profiled(log(ranks=4, modules={"POSIX": posix(**record)})).files[0].writers == 4


def test_percentile_is_known_if_unknown_sizes_cannot_change_it():
    most = {
        "WRITES": 100,
        "BYTES_WRITTEN": 1,
        "SIZE_WRITE_100_1K": 100,
        "ACCESS1_ACCESS": 512,
        "ACCESS1_COUNT": 60,
    }
    sizes = profiled(log(modules={"POSIX": posix(**most)})).workflow.io.transfer_size.write
    assert (sizes.p50, sizes.p90, sizes.min, sizes.max) == (512, None, None, None)
    few = most | {"ACCESS1_COUNT": 40}
    assert profiled(log(modules={"POSIX": posix(**few)})).workflow.io.transfer_size.write.p50 is None


# Heat maps


def heat(*bins: int, width: float = 0.1) -> dict[str, np.ndarray]:
    return {
        "id": np.array([2], np.uint64),
        "rank": np.array([0]),
        "width": np.array([width]),
        "write": np.array([bins]),
        "read": np.zeros((1, len(bins)), np.int64),
    }


def test_busy_times_are_at_most_the_active_stretches():
    assert profiled(log()).bounds["workflow.io.busy_s.write"] == (1.0, 2.0)
    low, high = profiled(log(heat=heat(*[1] * 13, *[0] * 87))).bounds["workflow.io.busy_s.write"]
    assert (low, high) == (1.0, pytest.approx(1.3))


def test_heat_map_with_dropped_records_gives_no_bounds():
    partial = profiled(log(heat=heat(1, 0), partial=["HEATMAP"]))
    assert partial.bounds["workflow.io.busy_s.write"] == (1.0, 2.0)


# Flushes


def flushed(*kept: tuple[int, int, float, float]) -> Profile:
    """4 writes and flushes of a file, together 2 s."""
    counters = {"WRITES": 4, "BYTES_WRITTEN": 4 * MiB, "FSYNCS": 1, "F_WRITE_TIME": 2.0}
    return profiled(log(modules={"POSIX": posix(**counters)}, calls=calls(*kept)))


def test_write_time_not_spent_in_recorded_writes_is_flush_time():
    profile = flushed((0, 0, 1.0, 1.5), (0, 1, 2.0, 2.25), (1, 2, 1.0, 1.125), (1, 3, 3.0, 3.125))
    assert (profile.workflow.io.time_s.write, profile.workflow.io.time_s.sync) == (1.0, 1.0)
    assert profile.files[0].io.time_s.sync == 1.0


def test_writes_of_several_threads_at_a_time_count_once_as_darshan_counts_them():
    profile = flushed((0, 0, 1.0, 1.5), (0, 1, 1.25, 2.0), (1, 2, 1.0, 1.5), (1, 3, 3.0, 3.25))
    assert (profile.workflow.io.time_s.write, profile.workflow.io.time_s.sync) == (1.75, 0.25)


def test_unknown_flushes_of_one_file_leave_all_flushes_with_writes():
    two = {"OPENS": [1, 1], "WRITES": [4, 1], "BYTES_WRITTEN": [4 * MiB, 1], "FSYNCS": [1, 1]}
    both = Module(
        np.array([1, 3], np.uint64),
        np.array([-1, -1]),
        {f"POSIX_{name}": np.array(values) for name, values in two.items()},
        {"POSIX_F_WRITE_TIME": np.array([2.0, 1.0])},
        "POSIX",
    )
    ids = {"ids": np.array([1, 3], np.uint64), "names": ["/lustre/run/out", "/lustre/run/other"]}
    kept = calls((0, 0, 1.0, 1.5), (0, 1, 2.0, 2.25), (1, 2, 1.0, 1.125), (1, 3, 3.0, 3.125))
    profile = profiled(log(modules={"POSIX": both}, calls=kept, **ids))
    assert (profile.workflow.io.time_s.write, profile.workflow.io.time_s.sync) == (3.0, None)
    assert {file.io.time_s.sync for file in profile.files} == {None}


def test_missing_write_makes_the_time_of_flushes_null():
    profile = flushed((0, 0, 1.0, 1.5), (0, 1, 2.0, 2.25), (1, 2, 1.0, 1.125))
    assert (profile.workflow.io.time_s.write, profile.workflow.io.time_s.sync) == (2.0, None)
    assert "counted as write time" in profile.provenance["io.time_s.sync"]


@pytest.mark.parametrize(
    ("module", "attribute", "said"),
    [
        ("LUSTRE", "files.stripe_count", "records of Lustre were dropped when memory ran out"),
        ("DXT_POSIX", "phases", "when each call took place; DXT dropped calls when memory ran out"),
        ("HEATMAP", "phases", "records of the heat map were dropped when memory ran out"),
    ],
)
def test_dropped_dxt_records_are_reported_without_damage(module, attribute, said):
    profile = profiled(log(layouts=components((4, 1 << 20, 0, -1)), partial=[module]))
    assert said in profile.provenance[attribute]
    assert (profile.traces[0].complete, profile.traces[0].problems) == (True, [])


@given(
    st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([50, 90]),
    st.randoms(),
)
def test_no_choice_of_unknown_sizes_changes_a_known_percentile(operations, percent, random):
    ends = np.array([100, 200])
    sizes = np.array([size for size, _ in operations])
    known = np.array([is_known for _, is_known in operations])
    bins = np.searchsorted(ends, sizes, side="left")
    exact = np.unique(sizes[known], return_counts=True)
    told = _proven(ends, np.bincount(bins, minlength=3), exact, percent)
    if told is None:
        return
    for _ in range(5):
        others = [random.randint((0, 101, 201)[one], (100, 200, 300)[one]) for one in bins[~known]]
        chosen = np.sort(np.concatenate([sizes[known], np.array(others, np.int64)]))
        assert chosen[-(-len(chosen) * percent // 100) - 1] == told
