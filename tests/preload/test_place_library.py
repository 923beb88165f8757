"""`libvani_place.so` under real programs, with a stand-in for liblustreapi that records its requests."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from building import HERE, SOURCES, Built, build, missing
from mpi_compilers import compiles_mpi
from place_desk import CALLS, PLAIN

from vani.centre.placement_library.database import INTERACTIONS, file_hash, plan_interactions, store
from vani.centre.placement_library.interactions import Interaction

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

ENDLESS = """\
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS file_hash, 'x' AS file_name,
i AS extent_start, i AS extent_end, i AS stripe_size, i AS stripe_count, '' AS ost_list FROM n"""


@pytest.mark.parametrize(
    "command",
    [
        ("cp", "source", "a"),
        ("dd", "if=source", "of=a", "status=none"),
        ("dd", "if=source", "of=a", "status=none", "conv=excl"),
        ("bash", "-c", "echo data >a"),
        ("sh", "-c", "echo data >>a"),
        ("tee", "a"),
        ("touch", "a"),
        ("tar", "--create", "--file=a", "source"),
        (sys.executable, "-c", "open('a', 'w').write('data\\n')"),
        (sys.executable, "-c", "import os; os.open('a', os.O_CREAT | os.O_EXCL | os.O_RDWR)"),
        (sys.executable, "-c", "import numpy; numpy.zeros(4).tofile('a')"),
    ],
    ids=lambda command: "-".join(command)[:40].replace("/", "-"),
)
def test_program_creates_the_file_with_its_layout(desk, command):
    desk.plan("a")
    desk.run(*command, cwd="work")
    assert desk.placed() == {"a": PLAIN}
    assert "placed 1 a" in desk.told()
    if command[0] in {"cp", "bash"}:
        assert (desk.folder / "work" / "a").read_text() == "data\n"


def test_each_row_is_a_component_and_the_last_has_no_end(desk):
    name = str(desk.folder / "work" / "a")
    first = Interaction(name, 8 << 30, 1, 0, 128 << 20, 128 << 20, 1, 0, (10,))
    rest = Interaction(name, 8 << 30, 2, 128 << 20, 8 << 30, 64 << 20, 3, 0, (24, 29, 34))
    store([rest, first], str(desk.database))
    desk.run("cp", "source", "a")
    assert desk.placed() == {"a": "composite [0,134217728) 1x134217728:10 [134217728,-1) 3x67108864:24,29,34"}


def test_first_row_without_stripes_is_on_the_metadata_target(desk):
    name = str(desk.folder / "work" / "a")
    first = Interaction(name, 8 << 20, 1, 0, 1 << 20, 1 << 20, 0, 0, ())
    rest = Interaction(name, 8 << 20, 2, 1 << 20, 8 << 20, 1 << 20, 3, 0, (24, 29, 34))
    store([rest, first], str(desk.database))
    desk.run("cp", "source", "a")
    assert desk.placed() == {"a": "composite mdt[0,1048576) [1048576,-1) 3x1048576:24,29,34"}


def test_a_row_without_osts_leaves_the_choice_to_lustre(desk):
    desk.plan("a", osts=(), stripe_count=4)
    desk.run("cp", "source", "a")
    assert desk.placed() == {"a": "plain [0,-1) 4x1048576:"}


def test_the_longest_list_of_osts_is_handed_on(desk):
    osts = tuple(range(2000))
    desk.plan("a", osts=osts, stripe_count=2000)
    desk.run("cp", "source", "a")
    assert desk.placed()["a"] == "plain [0,-1) 2000x1048576:" + ",".join(map(str, osts))


def test_only_exact_names_get_a_layout(desk):
    desk.plan("a", "folder/a b")
    desk.run("sh", "-c", "echo >a.locktest; echo >A; echo >'a '; echo >folder/a; echo >aa")
    assert desk.placed() == {}
    assert desk.told() == ["unknown a.locktest", "unknown A", "unknown a ", "unknown folder/a", "unknown aa"]


def test_name_with_a_colliding_hash_gets_no_layout(desk):
    seen: dict[int, str] = {}
    random = Random(1)
    names = (f"a{random.getrandbits(64):016x}" for _ in range(1_000_000))
    one, other = next(
        (seen[code], name)
        for name in names
        if seen.setdefault(code := file_hash(f"{desk.folder}/work/{name}"), name) != name
    )
    desk.plan(one)
    desk.run("sh", "-c", f"echo >{other}; echo >{one}")
    assert desk.placed() == {one: PLAIN}
    assert plan_interactions(str(desk.database), f"{desk.folder}/work/{other}") == []


def test_a_file_that_exists_is_opened_as_ever(desk):
    desk.plan("source")
    desk.run("sh", "-c", "echo more >>source")
    assert desk.placed() == {}
    assert (desk.folder / "work" / "source").read_text() == "data\nmore\n"
    assert desk.told() == ["exists source"]


@pytest.mark.parametrize(
    "name",
    [
        ".//./a",
        "../work/a",
        "folder/../a",
        "{folder}/work//a",
        "{folder}/work/./a",
        "link/../a",
        "{folder}//work/folder/../a",
    ],
)
def test_another_way_to_write_a_path_is_the_same_file(desk, name):
    (desk.folder / "work" / "link").symlink_to("folder")
    desk.plan("a")
    name = name.format(folder=desk.folder)
    desk.run("dd", "if=source", f"of={name}", "status=none")
    assert desk.placed() == {name: PLAIN}


def test_dots_after_a_link_are_resolved_from_its_target(desk):
    (desk.folder / "elsewhere").mkdir(mode=0o777)
    (desk.folder / "work" / "link").symlink_to(desk.folder / "elsewhere")
    desk.plan("a")
    (desk.folder / "elsewhere").chmod(0o777)
    desk.run("dd", "if=source", "of=link/../work/a", "status=none")
    desk.run("sh", "-c", "echo >link/../a; rm link/../a")
    assert list(desk.placed()) == ["link/../work/a"]


def test_odd_names_are_found(desk):
    names = ['it\'s "so"', "a\nb", "%s?#", "ä😀", "x" * 255]
    desk.plan(*names)
    for name in names:
        desk.run("cp", "source", name)
    assert desk.told() == [f"placed 1 {name}".replace("\n", "?") for name in names]


def test_every_call_that_creates_a_file_gives_it_its_layout(desk):
    desk.plan(*(f"a.{call}" for call in CALLS))
    desk.run(desk.built.calls, ".", "every")
    found = desk.placed()
    inside = "/proc/self/fd/3/a.openat64"
    assert set(found) == {f"a.{call}" for call in CALLS if call != "openat64"} | {inside}
    assert set(found.values()) == {PLAIN}


def made(work: Path) -> list[tuple[object, ...]]:
    return sorted((path.name, path.lstat().st_mode, path.lstat().st_size) for path in work.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "fails",
    [
        "",
        "alloc",
        "extent",
        "before",
        "after",
        "no library",
        "no database",
        "no text",
        "damaged",
        "foreign",
        "view",
        "refused",
    ],
)
def test_a_program_sees_the_same_with_and_without_the_library(desk, fails):
    names = [f"a.{call}" for call in [*CALLS, "freopen-x", "slash", "bad-folder"]] + [
        "dangling",
        "target",
        "folder",
        "nowhere/a",
    ]
    if fails == "extent":
        rows = [
            Interaction(
                str(desk.folder / "work" / name), None, i, i << 20, (i + 1) << 20, 1 << 20, 1, None, ()
            )
            for name in names
            for i in range(3)
        ]
        store(rows, str(desk.database))
    elif fails == "refused":
        desk.plan(*names, stripe_size=1000)
    else:
        desk.plan(*names)
    if fails == "no database":
        desk.database.unlink()
    elif fails == "no text":
        desk.database.write_text("schema: vani.plan/1\n" * 100)
    elif fails == "damaged":
        content = desk.database.read_bytes()
        desk.database.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    elif fails in {"foreign", "view"}:
        desk.database.unlink()
        statement = (
            "CREATE TABLE t (x)" if fails == "foreign" else f"CREATE VIEW vani_interaction AS {ENDLESS}"
        )
        with closing(sqlite3.connect(desk.database)) as other:
            other.execute(statement)
    shutil.copytree(desk.folder / "work", desk.folder / "bare", symlinks=True)
    (desk.folder / "bare").chmod(0o777)
    bare = desk.run(desk.built.calls, ".", "every", library=False, cwd="bare")
    more = {"VANI_PLACE_LIB": "/nowhere.so"} if fails == "no library" else {"STANDIN_FAIL": fails}
    under = desk.run(desk.built.calls, ".", "every", **more)
    assert under.stdout == bare.stdout
    assert under.stderr == bare.stderr == ""
    assert made(desk.folder / "work") == made(desk.folder / "bare")
    assert (desk.placed() == {}) == (fails != "")
    if fails:
        assert not [line for line in desk.told() if line.startswith("placed")]
        assert [line for line in desk.told() if line.startswith(("default: ", "off: "))]


@pytest.mark.slow
def test_program_that_closes_all_its_files_continues(desk):
    # With this many, the second lookup needs pages that the first did not read.
    desk.plan("a.open", "a.open64", *(f"other.{i}" for i in range(20_000)))
    bare = desk.run(desk.built.calls, ".", "closed", library=False).stdout
    for name in ("a.open", "a.open64"):
        (desk.folder / "work" / name).unlink()
    assert desk.run(desk.built.calls, ".", "closed").stdout == bare
    assert list(desk.placed()) == ["a.open", "a.open64"]


def test_child_of_vfork_allocates_nothing_and_its_parent_continues(desk):
    desk.plan("a.open", "a.open64")
    done = desk.run(desk.built.calls, ".", "vfork")
    assert done.stdout.startswith("child 0\n")
    assert list(desk.placed()) == ["a.open64"]
    assert (desk.folder / "work" / "a.open").exists()


def test_signal_handler_performs_no_lookups(desk):
    desk.plan("a.open", "a.open64")
    desk.run(desk.built.calls, ".", "handler")
    assert list(desk.placed()) == ["a.open64"]
    assert (desk.folder / "work" / "a.open").read_text() == "crash\n"


@pytest.mark.slow
def test_threads_and_forks_make_all_their_files_with_a_layout(desk):
    names = [f"s.{thread}.{i}" for thread in range(16) for i in range(100 if thread < 8 else 20)]
    desk.plan(*names)
    for _ in range(3):
        for name in names:
            (desk.folder / "work" / name).unlink(missing_ok=True)
        (desk.folder / "recorded").unlink(missing_ok=True)
        assert desk.run(desk.built.calls, ".", "stress").stdout == "failed 0\n"
        assert set(desk.placed()) == set(names)


def test_descriptors_scripts_may_use_are_left_free(desk):
    desk.plan("a")
    done = desk.run("bash", "-c", "echo >a; exec {first}>b; echo $first; ls /proc/$$/fd")
    bare = desk.run("bash", "-c", "echo >c; exec {first}>d; echo $first; ls /proc/$$/fd", library=False)
    assert [line for line in done.stdout.splitlines() if line != "900"] == bare.stdout.splitlines()


def test_nothing_happens_without_a_database_in_the_environment(desk):
    desk.plan("a")
    desk.run("cp", "source", "a", VANI_PLACE_DB="")
    assert (desk.placed(), desk.told()) == ({}, [])


def test_the_database_is_found_after_a_change_of_folder(desk):
    desk.plan("a")
    desk.run("sh", "-c", "cd /; echo >$OLDPWD/a", VANI_PLACE_DB="../place.sqlite")
    assert list(desk.placed().values()) == [PLAIN]


def test_a_database_with_odd_characters_in_its_name_is_found(desk):
    desk.plan("a")
    odd = desk.folder / "a?mode=memory#%41 'é.sqlite"
    desk.database.rename(odd)
    desk.run("cp", "source", "a", VANI_PLACE_DB=str(odd))
    assert desk.placed() == {"a": PLAIN}


def test_unwritable_log_stops_nothing(desk):
    desk.plan("a", "b")
    desk.run("cp", "source", "a", VANI_PLACE_LOG="/nowhere/log")
    desk.run("cp", "source", "b", VANI_PLACE_LOG="/dev/full")
    assert desk.placed() == {"a": PLAIN, "b": PLAIN}


def test_the_table_and_its_hash_are_those_that_the_library_knows():
    source = (SOURCES / "lookup.c").read_text()
    asked = "extent_start, extent_end, stripe_size, stripe_count, ost_list"
    assert f"SELECT {asked} FROM {INTERACTIONS.name}" in source
    assert set(asked.split(", ")) | {"file_hash", "file_name"} <= {column.name for column in INTERACTIONS.c}


@pytest.fixture(scope="session", params=[".mpich", ".openmpi", ""])
def mpi(request: pytest.FixtureRequest, built: Built) -> list[str]:
    """How to start a program of four processes: with Debian's libraries by name, elsewhere with the installed one."""
    compiler, start = shutil.which(f"mpicc{request.param}"), shutil.which(f"mpiexec{request.param}")
    if compiler is None or start is None or not compiles_mpi(compiler):
        pytest.skip(f"there is no mpicc{request.param} with its headers, or no mpiexec{request.param}")
    if request.param == "" and (shutil.which("mpicc.mpich") or shutil.which("mpicc.openmpi")):
        pytest.skip("it is one of those above")
    program = built.library.parent / f"writes_mpi{request.param}"
    subprocess.run(
        [compiler, "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "writes_mpi.c"], check=True
    )
    return [start, "-n", "4", str(program)]


def test_an_mpi_program_makes_its_shared_file_once_with_its_layout(desk, mpi):
    desk.plan("shared", "other", "ufs:other", "shared.locktest")
    more_than_cores = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    desk.run(*mpi, "shared", "ufs:other", TMPDIR="/tmp", **more_than_cores)
    # ROMIO treats `ufs:` as the kind of file system, OMPIO as a part of the name.
    other = "other" if (desk.folder / "work" / "other").exists() else "ufs:other"
    assert {Path(name).name: layout for name, layout in desk.placed().items()} == {
        "shared": PLAIN,
        other: PLAIN,
    }
    for name in ("shared", other):
        assert (desk.folder / "work" / name).read_bytes()[::4] == bytes([0, 1, 2, 3])
    assert not [line for line in desk.told() if line.startswith("unknown ") and " /" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("action", ["every", "threads", "closed"])
def test_no_sanitizer_finds_anything(desk, action):
    # Without forks: a child may find the sanitizer's own allocator locked for ever.
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        checked = build(Path(name), *flags)
        names = [f"a.{call}" for call in CALLS] + [
            f"s.{thread}.{i}" for thread in range(16) for i in range(100)
        ]
        desk.plan(*names)
        runtime = subprocess.run(
            ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        ).stdout
        for fails in ("", "after"):
            desk.run(
                desk.built.calls, ".", action, STANDIN_FAIL=fails, LD_PRELOAD=f"{runtime.strip()} {checked.library}",
                ASAN_OPTIONS="detect_leaks=0",
            )  # fmt: skip
    assert desk.placed()


@pytest.mark.slow
def test_valgrind_finds_no_error(desk):
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    desk.plan(*(f"a.{call}" for call in CALLS))
    desk.plan(*(f"s.{thread}.{i}" for thread in range(8) for i in range(100)))
    for action in ("every", "threads"):
        desk.run("valgrind", "-q", "--error-exitcode=9", desk.built.calls, ".", action)
    desk.run("valgrind", "--tool=helgrind", "-q", "--error-exitcode=9", desk.built.calls, ".", "closed")
    assert desk.placed()
