"""`vani demo`: its printed commands work unchanged and reproduce its files, and no existing file is lost."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

import vani

STORY = ROOT / "vani" / "demo" / "striping"
DOCUMENTS = ("profile.yaml", "advice.yaml", "after.yaml", "report.html")
# The launcher that pip writes if the interpreter's path has a blank: a shell script that is also Python.
SCRIPT = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
from vani.cli.main import main

main()
"""


def commands_of(shown: str) -> list[str]:
    """Lines that start with exactly two blanks are commands."""
    return [line[2:] for line in shown.splitlines() if line[:2] == "  " and line[2:3].strip()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run_in_a_shell(commands: list[str]) -> None:
    done = subprocess.run(["/bin/sh", "-eu"], input="\n".join(commands), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_printed_commands_recreate_the_files_of_the_demo(run, desk):
    done = run("demo", "-o", "it's my run", "--copy", "a copy/of it")
    assert (done.status, done.err) == (0, "")
    assert contents(desk / "a copy" / "of it") == contents(STORY)
    made = contents(desk / "it's my run")
    assert sorted(made) == sorted(DOCUMENTS)
    for name in DOCUMENTS:
        (desk / "it's my run" / name).unlink()

    commands = commands_of(done.out)
    assert len(commands) == 4
    story = done.out.partition("\n\n")[0].splitlines()
    assert len(story) == 10
    assert [line.partition(" ")[0] for line in story if line[0] != " "] == [
        "Run", "Verdict", "Cause", "Setting", "Line", "Expected", "Measured",
    ]  # fmt: skip
    assert any(line.startswith("Setting   Use 16 targets, 4 for each of 4 nodes as measured on this machine, in") for line in story)
    assert "Line      lfs setstripe -c 16 -S 4M /scratch/run" in story
    assert "Expected  write time: 4.38 s -> 1.2 s, 3.65 times as fast (2.16 to 6.16)" in story
    assert story[-1] == "Measured  run time: 4.47 s -> 1.03 s, 4.3 times as fast, after pasting it"
    assert "'a copy/of it/before/shared-write'" in commands[0]
    run_in_a_shell(commands)
    assert contents(desk / "it's my run") == made


def test_a_trace_and_a_log_of_the_demos_program_get_the_same_advice():
    """Formerly a log with extended tracing kept the present stripe size, as if it had no offsets."""
    of_trace, of_log = (
        next(one for one in vani.advise(vani.profile(STORY / run, job=job), system=STORY / "system.yaml").recommendations if one.apply)
        for run, job in (("before/shared-write", STORY / "job.yaml"), ("shared-write.darshan", None))
    )
    assert (of_trace.rule, of_trace.recommended, of_trace.apply) == (of_log.rule, of_log.recommended, of_log.apply)
    assert of_trace.recommended == {"stripe_count": 16, "stripe_size": 4 << 20}
    assert of_trace.gain.speedup == pytest.approx(of_log.gain.speedup)


@pytest.mark.slow
def test_demo_without_options_keeps_no_files_and_uses_the_bundled_trace(run, desk, monkeypatch, tmp_path):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    done = run("demo")
    assert (done.status, done.err) == (0, "")
    assert list(desk.iterdir()) == list((tmp_path / "scratch").iterdir()) == []
    profile, *_ = commands = commands_of(done.out)
    assert f" profile {shlex.quote(f'{STORY}/before/shared-write')} --job " in profile
    run_in_a_shell(commands)
    assert sorted(path.name for path in desk.iterdir()) == sorted(DOCUMENTS)
    assert done.out.splitlines()[-2].startswith("-o DIR keeps profile.yaml, advice.yaml, after.yaml and report.html (")


def test_a_trace_below_the_current_folder_is_named_from_there(run, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert " profile vani/demo/striping/before/shared-write --job vani/demo/striping/job.yaml -o profile.yaml" in commands_of(run("demo").out)[0]


@pytest.mark.slow
def test_program_is_named_by_the_path_the_shell_finds(desk):
    script = desk / "my programs" / "vani"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    found = {"PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    other = {"PATH": os.environ["PATH"].replace(str(Path(sys.executable).parent), "")}
    for path, place, program in (
        (found, desk, "vani"),
        (other, desk, "'my programs/vani'"),
    ):
        done = subprocess.run(
            [script, "demo"], capture_output=True, text=True, check=True, cwd=place, env={**os.environ, **path}
        )
        named = [line.partition(" profile ")[0] for line in commands_of(done.stdout)[:1]]
        named += [done.stdout.splitlines()[-1].removeprefix("Now your own: ").partition(" profile ")[0]]
        assert named == [program] * 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-o", "file"], "file: is not a folder; name a folder"),
        (["-o", "file/below"], "file: is not a folder; name a folder"),
        (["-o", "full"], "full/advice.yaml: is there already, and is not replaced; name another folder"),
        (["--copy", "full"], "full: is there already, and is not replaced; name a new folder"),
        (["--copy", "empty"], "empty: is there already, and is not replaced; name a new folder"),
        (["--copy", "file"], "file: is there already, and is not replaced; name a new folder"),
        (["--copy", "gone"], "gone: is there already, and is not replaced; name a new folder"),
        (["--copy", "file/below"], "file: is not a folder; name a folder"),
        (["--copy", "new", "-o", "./new"], "new: is used for two outputs; give each a different name"),
        (["-o", "/proc/new"], "/proc/new: cannot be made (No such file or directory); name another folder"),
        *(
            pytest.param(
                [option, "locked/new"],
                "locked: cannot be written: this folder is read-only; name another one",
                marks=pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere"),
            )
            for option in ("-o", "--copy")
        ),
    ],
)
def test_existing_files_remain_and_one_line_explains_it(run, desk, arguments, line):
    (desk / "file").write_text("mine")
    (desk / "full").mkdir()
    (desk / "full" / "advice.yaml").write_text("mine")
    (desk / "empty").mkdir()
    (desk / "gone").symlink_to("nowhere")
    (desk / "locked").mkdir(mode=0o555)
    before = sorted(desk.rglob("*"))
    done = run("demo", *arguments)
    assert (done.status, done.out, done.line) == (2, "", line)
    assert sorted(desk.rglob("*")) == before
    assert (desk / "file").read_text() == (desk / "full" / "advice.yaml").read_text() == "mine"


def test_unwritable_copy_is_reported(run):
    done = run("demo", "--copy", "/proc/new")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("/proc/new: cannot write here (")


def test_copy_belongs_to_the_user_if_the_package_is_read_only(run, desk, monkeypatch, tmp_path):
    package = tmp_path / "package"
    shutil.copytree(STORY, package / "demo" / STORY.name)
    for path in sorted((package / "demo" / STORY.name).rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (package / "demo" / STORY.name).chmod(0o555)
    monkeypatch.setattr("vani.__file__", str(package / "__init__.py"))
    assert run("demo", "--copy", "mine").status == 0
    assert all(path.stat().st_mode & 0o200 for path in (desk / "mine", *(desk / "mine").rglob("*")))
