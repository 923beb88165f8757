"""A renamed file stays the same file: its role in the run does not end with a name.

The final files and their lengths are those that the calls leave on a POSIX file system, worked out by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import examples
from quick_differences import differences, without_reason

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.cli.plot import heat_map
from vani.schema.profile import Profile
from vani.schema.unknown import NO_NAMES

MS = 10_000
"""In ticks of 100 ns."""


def make(path: str, size: int = 100) -> list[tuple[str, ...]]:
    return [("open", path, "577", "420"), ("write", path, "%p", str(size)), ("close", path)]


def use(path: str, size: int = 100) -> list[tuple[str, ...]]:
    return [("open", path, "0"), ("read", path, "%p", str(size)), ("close", path)]


def move(old: str, new: str) -> list[tuple[str, ...]]:
    return [("rename", old, new)]


def run(*steps: list[tuple[str, ...]], begin: int = 1) -> list[Call]:
    calls = [call for step in steps for call in step]
    return [
        Call(name, tuple(args), 0, 0, (begin + i) * MS, (begin + i) * MS + 1000)
        for i, (name, *args) in enumerate(calls)
    ]


def profile(folder: Path, *ranks: list[Call], **options: int) -> Profile:
    """The full profile; the quick one does not contradict it."""
    write_trace(folder / "t", list(ranks), layout="3.0")
    return compared(folder, folder / "t", **options)


def compared(folder: Path, *traces: Path, **options: int) -> Profile:
    full = vani.profile(*traces, store=folder / "s", files=None, **options)
    quick = vani.profile(*traces, quick=True, files=None)
    assert differences(quick, full) == []
    assert without_reason(quick, full) == set()
    return full


def told(found: Profile) -> dict[str, tuple[int | None, str | None]]:
    """Size and role by path."""
    assert found.workflow.files.total == found.dataset.files == len(found.files)
    return {f.path: (f.size, f.role) for f in found.files}


def test_file_written_under_another_name_and_read_under_its_last_is_one_file(tmp_path):
    found = profile(tmp_path, run(make("/d/x.tmp", 4096), move("/d/x.tmp", "/d/x"), use("/d/x", 1 << 20)))
    assert told(found) == {"/d/x": (4096, "output")}
    (file,) = found.files
    assert (file.opens, file.readers, file.writers, file.processes) == (2, 1, 1, 1)
    assert file.io.past_end.read == (1 << 20) - 4096
    assert (file.io.footprint.read, file.io.footprint.written) == (4096, 4096)
    assert file.first_s < file.last_s == pytest.approx(0.0071)


TWO = {"/d/a": (100, "output"), "/d/b": (200, "output")}
CASES = {
    "a chain": ([make("/d/a"), move("/d/a", "/d/b"), move("/d/b", "/d/c")], {"/d/c": (100, "output")}),
    "each step's checkpoint under one temporary name": (
        [
            step
            for i in range(1, 4)
            for step in (make("/d/tmp", 100 * i), move("/d/tmp", f"/d/chk{i}"), use(f"/d/chk{i}"))
        ],
        {f"/d/chk{i}": (100 * i, "output") for i in range(1, 4)},
    ),
    "the last checkpoint under one name, each over the one before": (
        [step for size in (500, 300) for step in (make("/d/tmp", size), move("/d/tmp", "/d/chk"))],
        {"/d/chk": (300, "output")},
    ),
    "a generation that is kept": (
        [
            make("/d/tmp1", 100),
            move("/d/tmp1", "/d/state"),
            make("/d/tmp2", 200),
            move("/d/state", "/d/state_prev"),
            move("/d/tmp2", "/d/state"),
            make("/d/tmp3", 300),
            move("/d/state", "/d/state_prev"),
            move("/d/tmp3", "/d/state"),
        ],
        # The file that the second rename to state_prev replaces was written first; both are reported under
        # that name.
        {"/d/state_prev": (200, "output"), "/d/state": (300, "output")},
    ),
    "a log that is rotated": (
        [
            make("/d/log", 100),
            move("/d/log", "/d/log.1"),
            make("/d/log", 200),
            move("/d/log.1", "/d/log.2"),
            move("/d/log", "/d/log.1"),
            make("/d/log", 300),
        ],
        {"/d/log.2": (100, "output"), "/d/log.1": (200, "output"), "/d/log": (300, "output")},
    ),
    "an old file that is put aside before the new one is made": (
        [move("/d/a", "/d/a.bak"), make("/d/a", 100)],
        {"/d/a": (100, "output")},
    ),
    "a swap": (
        [
            make("/d/a", 200),
            make("/d/b", 100),
            move("/d/a", "/d/t"),
            move("/d/b", "/d/a"),
            move("/d/t", "/d/b"),
        ],
        TWO,
    ),
    "a rename over a file that the run wrote": (
        [make("/d/x", 500), make("/d/x.tmp", 100), move("/d/x.tmp", "/d/x")],
        {"/d/x": (100, "output")},
    ),
    "the target is removed first": (
        [make("/d/x", 500), make("/d/x.tmp", 100), [("unlink", "/d/x")], move("/d/x.tmp", "/d/x")],
        {"/d/x": (100, "output")},
    ),
    "the old name is removed, which fails": (
        [make("/d/x.tmp"), move("/d/x.tmp", "/d/x"), [("unlink", "/d/x.tmp")]],
        {"/d/x": (100, "output")},
    ),
    "removed under its last name": (
        [make("/d/x.tmp"), move("/d/x.tmp", "/d/x"), [("unlink", "/d/x")]],
        {"/d/x": (100, "temporary")},
    ),
    "written and closed after it was renamed": (
        [
            [("open", "/d/x.tmp", "577", "420"), ("write", "/d/x.tmp", "%p", "100")],
            move("/d/x.tmp", "/d/x"),
            [("write", "/d/x.tmp", "%p", "28"), ("close", "/d/x.tmp")],
        ],
        {"/d/x": (128, "output")},
    ),
    "renamed to its own name": ([make("/d/x"), move("/d/x", "/d/x")], {"/d/x": (100, "output")}),
    "an input that is put elsewhere": ([use("/d/in"), move("/d/in", "/d/done")], {"/d/done": (None, "input")}),
    "a folder of a checkpoint": (
        [
            [("mkdir", "/d/chk.tmp", "493")],
            make("/d/chk.tmp/a", 100),
            make("/d/chk.tmp/sub/b", 200),
            make("/d/chk.tmp/c", 300),
            move("/d/chk.tmp", "/d/chk"),
            use("/d/chk/a"),
            use("/d/chk/sub/b"),
        ],
        # No call names c in the new folder, so it keeps the name that calls give it.
        {"/d/chk/a": (100, "output"), "/d/chk/sub/b": (200, "output"), "/d/chk.tmp/c": (300, "output")},
    ),
    "folders": ([move("/d/1", "/d/2"), make("/d/2/x")], {"/d/2/x": (100, "output")}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(6)
def test_every_file_is_reported_under_its_last_name(tmp_path, case):
    steps, files = CASES[case]
    assert told(profile(tmp_path, run(*steps))) == files


def test_ranks_attempting_the_same_rename_rename_one_file(tmp_path):
    # Only the first one succeeds; the others leave the same record.
    ranks = [run(make("/d/tmp"), move("/d/tmp", "/d/x"), begin=1 + rank) for rank in range(4)]
    assert told(profile(tmp_path, *ranks)) == {"/d/x": (100, "output")}


def test_operations_of_other_ranks_before_a_rename_count_for_the_renamed_file(tmp_path):
    writes = [("open", "/d/tmp", "2"), ("pwrite", "/d/tmp", "%p", "100", "100"), ("close", "/d/tmp")]
    first = run(make("/d/tmp"), [("access", "/d", "0")] * 4, move("/d/tmp", "/d/x"))
    found = profile(tmp_path, first, run(writes, begin=3))
    assert told(found) == {"/d/x": (200, "output")}
    assert (found.files[0].access, found.files[0].processes) == ("shared", 2)


def test_checkpoint_renamed_before_another_app_reads_it_links_both_apps(tmp_path):
    calls = {"1-sim": run(make("/d/chk.tmp", 4096), move("/d/chk.tmp", "/d/chk")), "2-post": run(use("/d/chk", 4096))}
    for begin, (name, rank) in enumerate(calls.items()):
        write_trace(tmp_path / "w" / name, [rank], layout="3.0", start_unix=1.7e9 + 10 * begin)
    found = compared(tmp_path, tmp_path / "w")
    (link,) = found.workflow.app_dependencies
    assert (link.producer, link.consumer, link.files) == ("sim", "post", 1)
    assert (link.bytes_written, link.bytes_read) == (4096, 4096)
    assert told(found) == {"/d/chk": (4096, "intermediate")}
    assert found.files[0].apps == ["sim", "post"]


def test_reader_of_a_reused_checkpoint_name_depends_on_its_last_writer(tmp_path):
    sim = run(make("/d/tmp", 100), move("/d/tmp", "/d/1"), make("/d/tmp", 200), move("/d/tmp", "/d/2"))
    for name, rank, start in (("1-sim", sim, 0), ("2-post", run(use("/d/2", 200)), 10)):
        write_trace(tmp_path / "w" / name, [rank], layout="3.0", start_unix=1.7e9 + start)
    found = compared(tmp_path, tmp_path / "w")
    (link,) = found.workflow.app_dependencies
    assert (link.files, link.bytes_written, link.bytes_read) == (1, 200, 200)
    assert told(found) == {"/d/1": (100, "output"), "/d/2": (200, "intermediate")}


def test_quick_profile_omits_single_files_after_renames(tmp_path):
    write_trace(tmp_path / "t", [run(make("/d/x.tmp"), move("/d/x.tmp", "/d/x"), make("/d/y"))], layout="3.0")
    quick = vani.profile(tmp_path / "t", quick=True)
    assert [f.path for f in quick.files] == ["/d/y"]
    assert quick.workflow.files.total is quick.apps[0].files.shared is quick.dataset.files is None
    assert quick.provenance["workflow.files"] == quick.provenance["dataset.files"] == NO_NAMES
    assert quick.workflow.io.bytes.written == 200


def test_a_read_before_the_first_write_of_another_trace_is_reported(tmp_path):
    calls = {"1-late": run(make("/d/x", 8)), "2-early": run(use("/d/x", 8))}
    for name, start in (("1-late", 1.7e9 + 5), ("2-early", 1.7e9)):
        write_trace(tmp_path / "w" / name, [calls[name]], layout="3.0", start_unix=start)
    found = vani.profile(tmp_path / "w", store=tmp_path / "s")
    assert not found.workflow.app_dependencies
    assert "up to 5 s before" in found.provenance["workflow.app_dependencies"]


def test_heat_maps_count_a_renamed_file_once(tmp_path):
    found = profile(tmp_path, run(make("/d/x.tmp"), move("/d/x.tmp", "/d/x"), use("/d/x")))
    uses = heat_map(found, store=tmp_path / "s").uses
    assert [(u.pattern, u.files, u.bytes_read, u.bytes_written) for u in uses] == [("/d/x", 1, 100, 100)]


NAMES = ["/d/a", "/d/b", "/d/c"]
NAME = st.sampled_from(NAMES)
STEP = st.one_of(
    st.tuples(st.just("make"), NAME, st.integers(1, 900)),
    st.tuples(st.just("use"), NAME, st.just(0)),
    st.tuples(st.just("move"), NAME, NAME),
    st.tuples(st.just("move"), NAME, NAME),
)


def simulated(steps: list[tuple]) -> dict[str, int | None]:
    """Size by last name of the files that are used, on a file system where every rename succeeds; None if only read.

    Of several files with the same last name, the last one counts.
    """
    content: dict[str, list] = {}
    every = []
    for step, name, other in steps:
        if step in ("make", "use"):
            one = content.get(name)
            if one is None:
                one = content[name] = [name, None]
                every.append(one)
            if step == "make":
                one[1] = other
                # By identity: files that no longer exist may look the same.
                every = [*(file for file in every if file is not one), one]
        elif name != other:
            moved = content.pop(name, None)
            content.pop(other, None)
            if moved is not None:
                moved[0] = other
                content[other] = moved
    found: dict[str, int | None] = {}
    for name, size in every:
        found[name] = size if size is not None else found.get(name)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=14))
@pytest.mark.slow
def test_files_and_sizes_are_those_of_a_simulated_file_system(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("renames")
    calls = [
        make(name, other) if step == "make" else use(name, 1) if step == "use" else move(name, other)
        for step, name, other in steps
    ]
    found = profile(folder, run(*calls))
    assert {f.path: f.size for f in found.files} == simulated(steps)
