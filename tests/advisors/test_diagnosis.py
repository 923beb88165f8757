"""Patterns in a profile: just below and above each threshold, and programs with known behaviour."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest
import yaml
from builders import file, name_pattern, profile, shared, system
from generators.rules import pages

import vani
from vani.advisors.catalogue import explained, patterns, rules
from vani.advisors.judge import advise_document, diagnosis
from vani.advisors.patterns import Pattern
from vani.errors import InputError
from vani.render.advice import to_markdown as markdown
from vani.schema.document import dumps
from vani.units import KiB, MiB

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/cases"


def names(*files, **settings):
    return {entry.pattern for entry in diagnosis(profile(files, **settings))}


IO_100_S = {"workflow.io.time_s": {"read": 0.0, "write": 50.0, "metadata": 50.0, "sync": 0.0, "total": 100.0}}


def metadata_run(count=2000, metadata_s=60.0, stat=0, opens=2000, sync_s=0.0, flushes=10, **settings):
    """A run with metadata operations and 100 s of I/O."""
    kinds = {
        name: {"count": number, "time_s": metadata_s * number / max(1, opens + stat)}
        for name, number in {"open": opens, "stat": stat}.items()
    } | {name: {"count": 0, "time_s": 0.0} for name in ("close", "seek", "directory", "remove", "other")}
    change = {
        "workflow.io.ops.metadata": count,
        "workflow.io.ops.sync": flushes,
        "workflow.io.metadata_kinds": kinds,
        "workflow.io.time_s": {
            "read": 0.0, "write": 100.0 - metadata_s - sync_s, "metadata": metadata_s, "sync": sync_s, "total": 100.0
        },
    }  # fmt: skip
    return names(change=change, **settings)


def test_small_requests_are_below_64_kib():
    assert "small_requests" in names(file(written=2000 * 60 * KiB, transfer=60 * KiB))
    assert "small_requests" not in names(file(written=2000 * 64 * KiB, transfer=64 * KiB))


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        (1000, 9000, True),
        (1000, 9001, False),
        (999, 1000, False),
        (999, 999, True),
        (100, 99, True),
        (99, 0, False),
    ],
)
def test_small_requests_are_a_thousand_or_most(small, large, expected):
    few = file("/d/a", written=small * 4096, transfer=4096)
    files = [few, file("/d/b", written=large * MiB, transfer=MiB)] if large else [few]
    assert ("small_requests" in names(*files)) is expected


@pytest.mark.parametrize(("size", "expected"), [(64 * KiB, True), (64 * KiB - 1, False)])
def test_requests_in_small_files_are_not_small(size, expected):
    seen = names(file(written=2000 * 1000, transfer=1000, footprint_written=size))
    assert ("small_requests" in seen) is expected


@pytest.mark.parametrize(("random", "expected"), [(0.2, True), (0.19, False)])
def test_random_access_is_a_fifth_of_the_requests(random, expected):
    one = file(read=10000 * MiB, consecutive=0.5, random=random)
    assert ("random_access" in names(one)) is expected


@pytest.mark.parametrize(("strided", "expected"), [(0.5, True), (0.49, False)])
def test_strides_belong_to_one_process_or_are_interleaved(strided, expected):
    pieces = {"written": 4000 * MiB, "consecutive": 1 - strided, "strided": strided}
    alone, several = names(file(**pieces)), names(shared(**pieces))
    assert ("strided_access" in alone, "interleaved_access" in several) == (expected, expected)
    assert "interleaved_access" not in alone
    assert "strided_access" not in several


@pytest.mark.parametrize(
    ("stride", "size", "expected"),
    [(188_032, 47_008, True), (47 * 4096, 47_008, False), (65_535, 8_191, False), (188_032, 64 * KiB, False)],
)
def test_small_requests_in_far_steps_of_no_whole_pages_are_random(stride, size, expected):
    seen = names(shared(written=4000 * size, transfer=size, consecutive=0.0, strided=1.0, stride=stride))
    assert ("random_access" in seen) is expected
    assert "interleaved_access" in seen


@pytest.mark.parametrize(("megabytes", "expected"), [(10, True), (9, False)])
def test_a_shared_file_has_a_tenth_of_the_bytes(megabytes, expected):
    files = [shared(written=megabytes * MiB), file(written=(100 - megabytes) * MiB)]
    seen = names(*files)
    assert ("shared_file" in seen, "low_level_interface" in seen) == (expected, expected)


@pytest.mark.parametrize(
    ("megabytes", "stripes", "targets", "expected"),
    [(64, 1, 12, True), (64, 1, None, True), (63, 1, 12, False), (64, 2, 12, False), (64, 1, 1, False)],
)
def test_one_target_of_several_is_for_a_large_shared_file(megabytes, stripes, targets, expected):
    mounts = [{"dir": "/d", "type": "lustre", "targets": targets}]
    large = shared("/d/a", written=megabytes * MiB) | {"stripe_count": stripes}
    assert ("one_target" in names(large, change={"storage.mounts": mounts})) is expected
    alone = file("/d/a", written=megabytes * MiB) | {"stripe_count": stripes}
    assert "one_target" not in names(alone, change={"storage.mounts": mounts})


@pytest.mark.parametrize(("object_size", "expected"), [(64 * MiB, True), (4 * MiB, False)])
def test_one_target_on_cephfs_is_one_object(object_size, expected):
    mounts = [{"dir": "/d", "type": "ceph", "targets": 8}]
    large = shared("/d/a", written=64 * MiB) | {"stripe_count": 1, "stripe_size": MiB, "object_size": object_size}
    assert ("one_target" in names(large, change={"storage.mounts": mounts})) is expected


def test_a_file_that_others_only_open_is_not_shared():
    assert "shared_file" not in names(shared(written=100 * MiB, writers=1))


@pytest.mark.parametrize(
    ("files", "makers", "processes", "expected"),
    [(32, 32, 64, True), (31, 31, 31, False), (32, 31, 32, False), (32, 32, 65, False)],
)
def test_file_per_process_is_32_files_of_half_of_the_processes(files, makers, processes, expected):
    row = name_pattern("/d/out.%d", files=files, processes=makers, written=100 * MiB) | {"writers": makers}
    run = profile(change={"patterns": [row | {"shared": 0}], "workflow.processes": processes})
    assert ("file_per_process" in {entry.pattern for entry in diagnosis(run)}) is expected


def test_small_inputs_of_single_processes_are_not_file_per_process():
    row = name_pattern("/d/in.%d", files=2000, processes=8, read=2000 * 4096, opens=2000) | {"shared": 0}
    seen = {entry.pattern for entry in diagnosis(profile(change={"patterns": [row]}))}
    assert "many_small_files" in seen
    assert "file_per_process" not in seen


def balanced(**balance):
    change = {f"apps[0].balance.{name}": value for name, value in balance.items()}
    return names(change=change | {"apps[0].io.bytes.written": 100 * MiB})


def test_one_process_of_several_writes_all():
    assert "one_process_moves_all" in balanced(writing_processes=1)
    assert "one_process_moves_all" not in balanced(writing_processes=2)


@pytest.mark.parametrize(("mean", "expected"), [(69, True), (71, False)])
def test_bytes_are_uneven_from_30_percent(mean, expected):
    seen = balanced(writing_processes=8, busiest_bytes=100 * MiB, mean_bytes=mean * MiB)
    assert ("imbalance" in seen) is expected


@pytest.mark.parametrize(("collective", "expected"), [(0.5, False), (0.49, True)])
def test_reading_aggregators_are_not_an_imbalance(collective, expected):
    change = {
        "apps[0].balance.busiest_bytes": 100 * MiB,
        "apps[0].balance.mean_bytes": 25 * MiB,
        "apps[0].io.bytes": {"read": 800 * MiB, "written": 0, "total": 800 * MiB},
    }
    rows = [{"layer": "mpiio", "direction": "read", "bytes": 800 * MiB, "collective": collective * 800 * MiB}]
    seen = names(interfaces=[{"layer": "mpiio"}], accesses=rows, change=change)
    assert ("imbalance" in seen) is expected


@pytest.mark.parametrize(("mean", "expected"), [(25.0, True), (25.1, False)])
def test_times_are_uneven_from_twice_the_mean(mean, expected):
    seen = balanced(writing_processes=8, slowest_io_time_s=50.0, mean_io_time_s=mean)
    assert ("imbalance" in seen) is expected


@pytest.mark.parametrize(("files", "size", "expected"), [(100, MiB, True), (99, MiB, False), (100, MiB + 1, False)])
def test_many_small_files_are_a_hundred_of_a_stripe(files, size, expected):
    row = name_pattern("/d/f%d", files=files, read=files * size)
    seen = {entry.pattern for entry in diagnosis(profile(change={"patterns": [row]}))}
    assert ("many_small_files" in seen) is expected


def test_scripts_of_the_run_are_no_evidence_of_many_small_files():
    rows = [name_pattern("/d/f%d", files=1000, read=1000 * 4096), name_pattern("/d/run.py", files=1, read=4096)]
    [entry] = [seen for seen in diagnosis(profile(change={"patterns": rows})) if seen.pattern == "many_small_files"]
    assert {str(fact.attribute).split(".")[0] for fact in entry.evidence} == {"patterns[0]"}


def test_metadata_bound_is_half_of_the_time():
    assert "metadata_bound" in metadata_run(metadata_s=50.0)
    assert "metadata_bound" not in metadata_run(metadata_s=49.0)
    assert "metadata_bound" not in metadata_run(count=999)


def test_remove_and_stat_calls_are_named_if_they_take_half_of_the_time():
    calls = [{"name": "rmdir", "count": 1000, "time_s": 50.0, "bytes": None}]
    assert "remove_bound" in names(change={"workflow.io.calls": calls, **IO_100_S})
    assert "remove_bound" not in names(change={"workflow.io.calls": [calls[0] | {"time_s": 49.0}], **IO_100_S})
    assert "remove_bound" not in names(change={"workflow.io.calls": [calls[0] | {"name": "mkdir"}], **IO_100_S})
    assert "stat_bound" in metadata_run(stat=1000, opens=1000, metadata_s=100.0)
    assert "stat_bound" not in metadata_run(stat=1000, opens=1001, metadata_s=100.0)


def test_files_are_opened_again_from_ten_times_on():
    assert "repeated_open" in names(file(written=MiB, opens=1000))
    assert "repeated_open" not in names(file(written=MiB, opens=999))
    assert "repeated_open" not in names(shared(written=MiB, processes=101, opens=1009))


def looked_at(opens, processes=1, stats=0, **settings):
    kinds = ("open", "close", "stat", "seek", "directory", "remove", "other")
    counts = {name: {"count": stats if name == "stat" else 0, "time_s": 0.0} for name in kinds}
    polled = file("/d/log", opens=opens, processes=processes, **settings)
    return names(polled, change={"files[0].io.metadata_kinds": counts})


def test_file_read_repeatedly_for_few_bytes_is_polled():
    assert "polling" in looked_at(100, read=100 * 4096, footprint_read=4096)
    assert "polling" in looked_at(40, stats=60, read=40 * 4096, footprint_read=4096)
    assert "polling" in looked_at(1, read=400 * 4096, transfer=4096, past_end=400 * 4096 - 99, footprint_read=99)
    assert "polling" not in looked_at(99, read=100 * 4096, footprint_read=4096)
    assert "polling" not in looked_at(199, processes=2, read=100 * 4096, footprint_read=4096)
    assert "polling" not in looked_at(100, read=100 * 64 * KiB, footprint_read=64 * KiB)
    assert "polling" not in looked_at(100, written=50 * 4096, transfer=4096)


@pytest.mark.parametrize(("megabytes", "expected"), [(10, True), (9, False)])
def test_direct_files_have_a_tenth_of_the_bytes(megabytes, expected):
    direct = file("/d/a", written=megabytes * MiB) | {"direct_opens": 1}
    assert ("direct_io" in names(direct, file("/d/b", written=(100 - megabytes) * MiB))) is expected


def test_a_stat_storm_has_more_than_two_for_each_open():
    assert "stat_storm" in metadata_run(stat=1001, opens=500, count=1501)
    assert "stat_storm" not in metadata_run(stat=1000, opens=500, count=1500)
    assert "stat_storm" not in metadata_run(stat=999, opens=10, count=1009)
    assert "stat_storm" not in metadata_run(stat=1001, opens=500, count=10100)


def test_flush_bound_is_a_quarter_of_the_time_in_ten_flushes():
    assert "flush_bound" in metadata_run(metadata_s=1.0, sync_s=25.0)
    assert "flush_bound" not in metadata_run(metadata_s=1.0, sync_s=24.0)
    assert "flush_bound" not in metadata_run(metadata_s=1.0, sync_s=50.0, flushes=9)


@pytest.mark.parametrize(("writes", "flushes", "expected"), [(200, 100, True), (201, 100, False), (198, 99, False)])
def test_flushes_after_each_write_are_one_for_two(writes, flushes, expected):
    seen = names(file(written=writes * MiB, sync_ops=flushes))
    assert ("flush_after_each_write" in seen) is expected


@pytest.mark.parametrize(("distinct", "expected"), [(50, True), (51, False)])
def test_bytes_move_again_from_twice_on(distinct, expected):
    reads = names(file(read=100 * MiB, footprint_read=distinct * MiB))
    writes = names(file(written=100 * MiB, footprint_written=distinct * MiB))
    assert ("reread" in reads, "rewritten" in writes) == (expected, expected)


@pytest.mark.parametrize(("beyond", "expected"), [(10, True), (9, False)])
def test_reads_past_the_end_are_a_tenth(beyond, expected):
    assert ("reads_past_end" in names(file(read=100 * MiB, past_end=beyond * MiB))) is expected


def test_misaligned_requests_are_not_multiples_of_a_page():
    assert "misaligned" in names(file(written=2000 * 47008, transfer=47008, size=2000 * 47008))
    assert "misaligned" not in names(file(written=2000 * 8000000, transfer=8000000, size=2000 * 8000000))
    assert "misaligned" not in names(file(written=2000 * 49152, transfer=49152, size=2000 * 49152))
    assert "misaligned" not in names(file(written=2000 * 47008, transfer=47008, size=MiB - 1, footprint_written=0))


def test_a_trace_without_mpi_io_does_not_show_that_a_program_does_without_it():
    plain = shared(written=100 * MiB)
    assert "low_level_interface" in names(plain)
    hidden = {"interfaces.layer": "strace sees system calls only: MPI-IO is seen as the calls it makes"}
    assert "low_level_interface" not in names(plain, provenance=hidden)


@pytest.mark.parametrize(("share", "expected"), [(0.49, True), (0.5, False)])
def test_independent_calls_are_most_of_a_shared_file(share, expected):
    layer = {"layer": "mpiio", "collective_share": share}
    seen = names(shared(written=100 * MiB, interface="mpiio"), interfaces=[layer])
    assert ("independent_io" in seen) is expected
    assert "low_level_interface" not in seen
    assert "independent_io" not in names(file(written=100 * MiB, interface="mpiio"), interfaces=[layer])
    large = shared(written=160 * MiB, transfer=16 * MiB, interface="mpiio")
    assert "independent_io" not in names(large, interfaces=[layer])


@pytest.mark.parametrize(("times", "expected"), [(2.0, True), (1.9, False)])
def test_sieving_moves_twice_the_requested_bytes(times, expected):
    moved = {"written": 190 * MiB, "asked": {"written": 190 * MiB / times}}
    seen = names(shared(interface="mpiio", **moved), interfaces=[{"layer": "mpiio"}])
    assert ("sieving" in seen) is expected


@pytest.mark.parametrize(("outside", "expected"), [(50.0, True), (49.0, False)])
def test_a_library_waits_from_half_of_its_time_on(outside, expected):
    times = {"mpiio": {"total": 100.0, "outside_file_system": outside, "slowest": 20.0}}
    assert ("library_waiting" in names(change={"workflow.library_time_s": times})) is expected


@pytest.mark.parametrize(("megabytes", "expected"), [(10, True), (9, False)])
def test_streams_carry_bulk_data_from_a_tenth_on(megabytes, expected):
    files = [
        file("/d/a", written=megabytes * MiB, interface="stdio"),
        file("/d/b", written=(100 - megabytes) * MiB),
    ]
    assert ("stdio_bulk_data" in names(*files)) is expected


def unseen(kind, path):
    return {"kind": kind, "files": [path], "count": 1, "cause": "mmap", "see_with": "strace"}


def test_mapped_data_is_named_and_mapped_software_is_not():
    assert "memory_mapped" in names(change={"unseen": [unseen("memory_mapped", "/lustre/data.arrow")]})
    assert "memory_mapped" not in names(change={"unseen": [unseen("memory_mapped", "/usr/lib/libz.so")]})


@pytest.mark.parametrize(("files", "expected"), [(100, True), (99, False)])
def test_an_environment_has_a_hundred_files(files, expected):
    row = name_pattern("/lustre/env/lib/python3.11/**", files=files, read=MiB, time_s=100.0)
    seen = {entry.pattern for entry in diagnosis(profile(change={"patterns": [row]}))}
    assert ("environment_startup" in seen) is expected


def test_absence_of_findings_is_stated_only_if_all_io_was_seen():
    run = {"workflow.io.ops.write": 10}
    assert names(file(written=100 * MiB), change=run) == {"nothing_remarkable"}
    assert names(file(written=100 * MiB), change=run | {"unseen": [unseen("asynchronous", "/d/x")]}) == set()


def test_evidence_is_in_the_profile_and_rules_exist():
    run = profile([shared(written=2000 * 4096, transfer=4096, opens=9000, time_s=10.0)])
    known = {rule.id for rule in rules()}
    observations = diagnosis(run)
    assert {"small_requests", "repeated_open", "shared_file"} <= {entry.pattern for entry in observations}
    for entry in observations:
        assert entry.evidence
        for item in entry.evidence:
            value = run.model_dump()
            for key in item.attribute.replace("[", ".").replace("]", "").split("."):
                value = value[int(key)] if isinstance(value, list) else value[key]
            assert value == item.value
    assert {rule for pattern in patterns() for rule in pattern.rules} <= known


def test_evidence_names_positions_in_the_whole_list():
    files = [file(f"/d/{name}", written=MiB, time_s=time) for name, time in (("a", 0.1), ("b", 0.2))]
    advice = advise_document(profile([*files, shared(written=900 * MiB, time_s=9.0)]), system(), files=1)
    attributes = [item.attribute for entry in advice.diagnosis for item in entry.evidence]
    assert "files[2].path" in attributes


def test_a_recommendation_names_the_patterns_that_its_rule_acts_on():
    small = file("/d/log", written=20000 * 4096, transfer=4096, opens=9000, time_s=90.0, consecutive=1.0)
    advice = advise_document(profile([small]), system())
    named = {entry.pattern: entry.rules for entry in advice.diagnosis}
    acting = {entry.rule: entry.patterns for entry in advice.recommendations}
    assert acting["POS002"] == ["small_requests"]
    for rule, of_rule in acting.items():
        assert of_rule == [pattern for pattern, rules in named.items() if rule in rules]
    tree = yaml.safe_load(dumps(advice))["recommendations"]
    assert [entry.get("patterns", []) for entry in tree] == list(acting.values())
    assert "Acts on: small requests." in markdown(advice).replace("\\", "")


def test_each_pattern_is_defined():
    page = (ROOT / "docs/rules/patterns.md").read_text()
    assert page == pages()["patterns.md"], "run `make docs`, or `python docs/generators/rules.py`"
    assert [f"| `{pattern.name}` |" in page for pattern in patterns()] == [True] * len(patterns())


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.name)
def test_a_pattern_is_explained(pattern):
    text = explained(pattern.name.replace("_", " "))
    assert f"{pattern.name}\n" in text
    assert all(f"\n{section}\n" in text for section in (*Pattern.sections, "Rules"))
    assert all(rule in text for rule in pattern.rules)
    assert pattern.page().finding.endswith(".")


def test_patterns_are_found_by_a_word_of_their_definition():
    assert explained("lookups").startswith("library_search\n")
    assert explained("lookups").count("\nDefinition\n") == 3
    with pytest.raises(InputError, match="did you mean small_requests"):
        explained("smal-request")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("rank0-recorder", {"one_process_moves_all"}),
        ("rank0-strace.tgz", {"one_process_moves_all"}),
        ("ds_ckpt-strace", {"one_process_moves_all"}),
        ("mspass-strace.tgz", {"many_small_files"}),
        ("loader-strace.tgz", {"many_small_files"}),
        ("dataloader-strace.tgz", {"many_small_files"}),
        ("sq-recorder", {"flush_bound"}),
        ("sq-strace.tgz", {"flush_bound"}),
        ("ior-fsync-each.txt", {"flush_after_each_write"}),
        ("indep-recorder", {"independent_io", "sieving"}),
        ("ior-noncontig.txt", {"independent_io", "sieving"}),
        ("pystart-strace.tgz", {"environment_startup", "stat_storm"}),
        ("zarr-strace.tgz", {"metadata_bound", "many_small_files"}),
        ("mdtest-recorder", {"metadata_bound"}),
        ("applog-recorder", {"repeated_open", "small_requests"}),
        ("ior-mpiio-fpp-2k.txt.gz", {"small_requests"}),
        ("mltrain-random-4k.darshan", {"random_access"}),
    ],
)
@pytest.mark.sampled(6)
def test_programs_of_known_behaviour(case, expected, tmp_path):
    place = SHARED / case
    if not place.exists():
        pytest.skip(f"{case} is not here")
    if place.suffix == ".gz":
        (tmp_path / place.stem).write_bytes(gzip.decompress(place.read_bytes()))
        place = tmp_path / place.stem
    elif place.suffix == ".tgz":
        with tarfile.open(place) as archive:
            archive.extractall(tmp_path, filter="data")
        place = tmp_path / place.stem
    run = vani.profile(place)
    assert expected <= {entry.pattern for entry in diagnosis(run)}


def test_collective_calls_are_neither_a_funnel_nor_independent():
    for case in ("wa-recorder", "iwa-recorder"):
        if not (SHARED / case).exists():
            pytest.skip(f"{case} is not here")
        seen = {entry.pattern for entry in diagnosis(vani.profile(SHARED / case))}
        assert seen.isdisjoint({"one_process_moves_all", "independent_io", "imbalance", "sieving", "small_requests"})


def lookup(folder="/scratch/run/ckpt", **settings):
    return {
        "folder": folder, "folders": 1, "names": 100, "calls": 2000, "failed": 0, "most": 20, "listings": 0,
        "time_s": 50.0, "excluded_s": 0.0,
    } | settings  # fmt: skip


SEARCHES = {"library_search", "newest_file_search", "outputs_checked_again", "polling"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (lookup(listings=20), "newest_file_search"),
        (lookup(listings=1), "outputs_checked_again"),
        (lookup(), "outputs_checked_again"),
        (lookup(failed=1000), "outputs_checked_again"),
        # Each name once: a check before its first use.
        (lookup(names=1001), None),
        (lookup(names=1, most=2000, failed=1999), "polling"),
        (lookup(names=9, most=100, failed=None), "polling"),
        # The name is there at each look.
        (lookup(names=9, most=100), None),
        (lookup(names=9, most=99, failed=None), None),
        (lookup(names=10, most=200, failed=1000), "polling"),
        (lookup(search_path=["/sw/a", "/sw/b", "/sw/c"], failed=200), "library_search"),
        # Few look-ups fail, so the program does not search: it knows these paths.
        (lookup(search_path=["/sw/a", "/sw/b", "/sw/c"], failed=199), None),
        (lookup("/sw/env/lib/python3.11/**"), "library_search"),
        (lookup(calls=999), None),
        # A missing name that is looked up a hundred times is a flag, whatever else the run does.
        (lookup(calls=400, names=1, most=400, failed=400), "polling"),
        (lookup(calls=400, names=1, most=400), None),
        (lookup(calls=99, names=1, most=99, failed=99), None),
    ],
)
def test_look_ups_have_a_purpose(row, expected):
    found = names(change={"lookups": [row], "workflow.io.ops.metadata": 3000, **IO_100_S})
    assert found & SEARCHES == ({expected} if expected else set())


def test_counts_do_not_show_whether_a_look_up_loads_a_module():
    change = {"lookups": [lookup("/sw/env/lib/python3.11/**", failed=None)], "workflow.io.ops.metadata": 3000, **IO_100_S}
    assert names(change=change, provenance={"traces.functions": "one name for several"}).isdisjoint(SEARCHES)


def test_the_share_of_look_ups_counts_those_of_names_that_are_no_files():
    run = profile(change={"lookups": [lookup(time_s=100.0, excluded_s=100.0, listings=9)], **IO_100_S})
    (seen,) = [entry for entry in diagnosis(run) if entry.pattern == "newest_file_search"]
    assert (seen.share, seen.target.path, seen.rules) == (0.5, "/scratch/run/ckpt", ["POS003"])
