"""Destinations of writes: never an input, not even through links, and with the mode that a file had."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from repository import ROOT

from vani.atomic import new_directory, write_bytes, write_text, write_together
from vani.errors import InputError, NoRoomError

PROFILE = ROOT / "tests" / "golden" / "v3-posix-mix-4r.yaml"


@pytest.fixture
def trace(desk, mix) -> Path:
    return shutil.copytree(mix, desk / "T")


@pytest.fixture
def document(desk) -> Path:
    return shutil.copy(PROFILE, desk / "p.yaml")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(run, desk, *arguments, name: str | None = None) -> str:
    """Run a command that must be refused before it changes anything; returns the line."""
    before = contents(desk)
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert contents(desk) == before
    assert done.line.startswith(f"{name or arguments[-1]}: "), done.line
    return done.line


READ = "is an input of this command: it is not overwritten; name another file"


@pytest.mark.parametrize(
    "command",
    [
        "advise p.yaml -o p.yaml",
        "advise p.yaml -o a.yaml --script p.yaml",
        "advise p.yaml --config vani.toml -o vani.toml",
        "advise p.yaml --system m.yaml -o m.yaml",
        "advise p.yaml --system m.yaml -o base.yaml",
        "report p.yaml --format txt -o p.yaml",
        "report p.yaml --advice a.md -o a.md",
        "plot ops p.json -o p.json",
        "diff p.yaml other.yaml -o p.yaml",
        "diff p.yaml other.yaml -o other.yaml",
        "diff p.yaml other.yaml -o vani.toml",
        "check p.yaml -o p.yaml",
        "check p.yaml -o vani.toml",
        "check p.yaml --baseline b.yaml -o b.yaml",
        "check p.yaml -o .vani/baseline.yaml",
        "check p.yaml --policy named.toml -o kept.yaml",
        "check p.yaml --save p.yaml",
        "check p.yaml --policy named.toml --save named.toml",
        "systems show m.yaml -o m.yaml",
        "systems show m.yaml -o base.yaml",
        "profile T --job job.yaml -o job.yaml",
        "profile T --system m.yaml -o m.yaml",
        "profile T --scheduler sched.json -o sched.json",
        "report T --format txt --scheduler sched.json -o sched.json",
        "plot ops p.yaml --scheduler p.json -o p.json",
    ],
)
def test_commands_do_not_overwrite_documents_they_read(run, desk, trace, document, command):
    for name in ("other.yaml", "b.yaml", "p.json", "a.md", "job.yaml", "sched.json", "kept.yaml"):
        shutil.copy(document, desk / name)
    (desk / ".vani").mkdir()
    shutil.copy(document, desk / ".vani" / "baseline.yaml")
    (desk / "m.yaml").write_text("schema: vani.system/2\nbase: base.yaml\n")
    (desk / "base.yaml").write_text("schema: vani.system/2\nbase: lassen\n")
    (desk / "vani.toml").write_text("[advise]\n")
    (desk / "named.toml").write_text('schema = "vani.policy/1"\n[check]\nbaseline = "kept.yaml"\n')
    assert refused(run, desk, *command.split()).endswith(READ)


@pytest.mark.parametrize("command", ["top", "show app", "letter app ada", "export", "export --parquet"])
def test_no_command_writes_over_a_history(run, desk, command, monkeypatch):
    with closing(sqlite3.connect(desk / "h.sqlite")) as database:
        database.execute("CREATE TABLE history_runs (id)")
    monkeypatch.setenv("VANI_HISTORY", str(desk / "h.sqlite"))
    said = refused(run, desk, "history", *command.split(), "-o", "h.sqlite")
    assert said.endswith("is a history: it is not overwritten; name another file")


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["link", "hard link"])
def test_another_name_of_a_document_does_not_hide_it(run, desk, document, link):
    link(document, desk / "x.yaml")
    assert refused(run, desk, "advise", "p.yaml", "-o", "x.yaml").endswith(READ)
    assert refused(run, desk, "advise", "x.yaml", "-o", "p.yaml").endswith(READ)


@pytest.mark.parametrize("option", ["-o", "--graph"])
@pytest.mark.parametrize(
    "name", ["T/recorder.mt", "T/VERSION", "T/9.ts", "linked/recorder.cst", "T/recorder.dat"]
)
def test_output_named_like_a_part_of_a_trace_is_refused(run, desk, trace, name, option):
    if option == "--graph":
        (desk / "g.dot").symlink_to(name)
    (desk / "linked").symlink_to("T")
    line = refused(run, desk, "profile", "T", option, "g.dot" if option == "--graph" else name)
    assert " a part of the trace " in line


def test_a_trace_that_the_command_does_not_read_is_not_written_over_either(run, desk, trace, document):
    assert "is a part of the trace" in refused(run, desk, "advise", "p.yaml", "-o", "T/recorder.mt")


def test_target_of_a_link_in_a_trace_is_a_part_of_the_trace(run, desk, trace):
    (trace / "recorder.cst").rename(desk / "elsewhere")
    (trace / "recorder.cst").symlink_to("../elsewhere")
    assert refused(run, desk, "profile", "T", "-o", "elsewhere").endswith(READ)
    os.link(trace / "recorder.mt", desk / "hard")
    assert refused(run, desk, "profile", ".", "-o", "hard").endswith(READ)


def test_parts_of_a_store_are_not_written_over(run, desk, trace, document):
    assert run("convert", "T", "S").status == 0
    for name in ("S/manifest.json", "S/calls/part-00000.parquet"):
        assert "is a part of the store" in refused(run, desk, "advise", "p.yaml", "-o", name)
    shutil.copytree(trace, desk / "S" / "T")
    assert refused(run, desk, "convert", "S/T", "S").endswith(
        "contains the trace, and would be replaced; name a new folder"
    )


def test_profile_may_be_in_the_folder_of_its_trace(run, desk, trace):
    for _ in range(2):
        assert run("profile", "T", "-o", "T/profile.yaml").status == 0


def test_files_of_a_data_set_are_kept_but_its_document_is_overwritten(run, desk):
    (desk / "data").mkdir()
    (desk / "data" / "a.bin").write_bytes(bytes(100))
    line = refused(run, desk, "collect", "--dataset", "data", "-o", "data/a.bin")
    assert line.endswith("is a file of the data set: it is not overwritten; name another file")
    for _ in range(2):
        assert run("collect", "--dataset", "data", "-o", "data/job.yaml").status == 0


def test_a_document_is_not_appended_to_itself(desk, document):
    before = document.read_bytes()
    with document.open("ab") as end:
        command = [sys.executable, "-m", "vani", "advise", "p.yaml"]
        done = subprocess.run(command, stdout=end, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"vani: stdout: {READ}\n")
    assert document.read_bytes() == before


def test_output_to_dev_stdout_is_appended_to_the_file(desk, document):
    log = desk / "log"
    log.write_text("before\n")
    with log.open("ab") as end:
        command = [sys.executable, "-m", "vani", "advise", "p.yaml", "-q", "-o", "/dev/stdout"]
        subprocess.run(command, stdout=end, check=True)
    assert log.read_text().startswith("before\nschema: vani.advice/3\n")


def test_the_page_of_a_job_is_not_the_profile(run, desk, document, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(document))
    assert refused(run, desk, "check", "p.yaml", "--format", "github", name=str(document)).endswith(READ)


# --- links, modes, read-only files ------------------------------------------------------------------


@pytest.mark.parametrize("exists", [True, False], ids=["to a file", "to nothing yet"])
def test_link_is_kept_and_its_target_is_written(run, desk, document, exists):
    (desk / "far").mkdir()
    if exists:
        (desk / "far" / "a.yaml").write_text("old")
    (desk / "a.yaml").symlink_to("far/a.yaml")
    assert run("advise", "p.yaml", "-o", "a.yaml").status == 0
    assert (desk / "a.yaml").is_symlink()
    assert (desk / "far" / "a.yaml").read_text().startswith("schema: vani.advice/3\n")
    assert [p.name for p in (desk / "far").iterdir()] == ["a.yaml"]


def test_a_link_to_itself_is_refused(run, desk, document):
    (desk / "a.yaml").symlink_to("a.yaml")
    done = run("advise", "p.yaml", "-o", "a.yaml")
    assert (done.status, done.line) == (
        2,
        "a.yaml: is a circular link; name another file",
    )


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_an_existing_output_keeps_its_mode(tmp_path, mode):
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_text("old")
        path.chmod(mode)
    write_text(one, "new")
    write_together({other: b"new"})
    for path in (one, other):
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


@pytest.mark.parametrize("option", ["-o", "--script"])
def test_a_read_only_output_is_refused_before_the_work(run, desk, option):
    (desk / "a.yaml").write_text("mine")
    (desk / "a.yaml").chmod(0o444)
    (desk / "link.yaml").symlink_to("a.yaml")
    for name in ("a.yaml", "link.yaml"):
        # The work itself would first complain about a profile that does not exist.
        line = refused(run, desk, "advise", "no.yaml", option, name)
        assert line == f"{name}: is read-only, and is not replaced; name another file, or make it writable"


def test_library_refuses_a_read_only_file_too(tmp_path):
    place = tmp_path / "a"
    place.write_text("mine")
    place.chmod(0o444)
    for write in (write_bytes, lambda path, content: write_together({tmp_path / "b": b"", path: content})):
        with pytest.raises(InputError, match="is read-only"):
            write(place, b"other")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert place.read_text() == "mine"


def test_nothing_is_written_if_one_of_two_outputs_is_impossible(run, desk, document, monkeypatch):
    (desk / "s.sh").write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vani.atomic.os.fsync", full)
    done = run("advise", "p.yaml", "-o", "a.yaml", "--script", "s.sh")
    assert done.status == 2
    assert contents(desk).keys() == {"p.yaml", "s.sh"}
    assert (desk / "s.sh").read_text() == "old"


def test_target_folder_of_a_link_is_replaced_and_the_link_kept(run, desk, mix):
    (desk / "far").mkdir()
    (desk / "S").symlink_to("far")
    for _ in range(2):
        assert run("convert", mix, "S").status == 0
        assert (desk / "S").is_symlink()
        assert (desk / "far" / "manifest.json").is_file()


def test_files_and_folders_are_made_without_the_mask_of_other_threads(tmp_path, monkeypatch):
    # A momentary os.umask(0) would make files of other threads accessible to all.
    seen = []
    real = os.umask

    def noted(mask):
        seen.append(mask)
        return real(mask)

    before = real(0o027)
    try:
        monkeypatch.setattr(os, "umask", noted)
        maker = threading.Thread(target=write_text, args=(tmp_path / "file", "x"))
        maker.start()
        maker.join()
        with new_directory(tmp_path / "folder"):
            pass
    finally:
        real(before)
    assert seen == []
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_unwritable_output_is_distinguished_from_other_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NoRoomError, match="cannot write here"), new_directory(tmp_path / "file" / "S"):
        pass
