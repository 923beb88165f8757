"""Wrong usage and bad input: exit status 2 and one line that says what, where, and what to do."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from repository import TRACES

from vani.cli.main import _COMMANDS


def test_help_without_a_command_goes_to_stderr(run):
    done = run()
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: vani ")
    assert all(name in done.err for name in _COMMANDS)


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_every_command_has_help(run, name):
    done = run(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Usage: vani {name} ")


def test_the_version_is_printed(run):
    done = run("--version")
    assert (done.status, done.out.split()[0]) == (0, "vani,")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["profil"], "no command 'profil'; did you mean 'profile'?"),
        (["zzz"], "no command 'zzz'; `vani --help` lists them"),
        (["profile"], "Missing argument 'TRACE [TRACE ...]'; see `vani profile --help`"),
        (["convert", "x"], "no destination is given; name a folder STORE, or a timeline with -o run.json"),
    ],
)
def test_wrong_usage(run, arguments, line):
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.line == line


def test_a_misspelt_option_is_guessed(run):
    done = run("profile", "--phse-gap", "1", "x")
    assert (done.status, done.out) == (2, "")
    # The rest of the sentence depends on the version of click.
    assert done.line.startswith("No such option")
    assert "--phase-gap" in done.line


@pytest.mark.parametrize(
    "arguments", [["profile", "x", "--store", ""], ["profile", "x", "-o", ""], ["profile", ""], ["diff", ""]]
)
def test_empty_path_is_not_a_folder(run, arguments):
    # Formerly `--store "$SCRATCH"` without such a variable put stores into the current folder.
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "is empty: is a variable not set?" in done.line


def test_an_option_without_its_value(run):
    done = run("profile", "x", "--job")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("Option '--job' requires an argument; see `vani ")


@pytest.mark.parametrize("gap", ["0", "-1", "nan", "inf", "1e300"])
def test_a_phase_gap_is_a_positive_number(run, mix, gap):
    done = run("profile", mix, f"--phase-gap={gap}")
    assert (done.status, done.out) == (2, "")
    assert done.line == f"--phase-gap: is {gap}; give a number above 0, below 1e+09"


@pytest.mark.parametrize("command", ["profile", "advise"])
@pytest.mark.parametrize("files", ["-1", "many", "1.5", "", "²", "9" * 5000])
def test_a_number_of_files_is_a_number(run, mix, command, files):
    done = run(command, mix, f"--files={files}")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith(f"--files: {files[:100] or 'empty'} is ") or done.line.startswith("--files: is -1; give")


def test_zero_files_are_refused(run, mix):
    assert run("advise", mix, "--files=0").line == "--files: is 0; give a whole number, 1 or more"


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--phase-gap=soon", "--phase-gap: is soon; give a number above 0, below 1e+09"),
        ("--graph-of=files", "--graph-of: is files; give one of apps, processes"),
    ],
)
def test_a_value_of_another_kind_is_refused(run, mix, option, line):
    done = run("profile", mix, option)
    assert (done.status, done.out, done.line) == (2, "", line)


def test_an_unknown_scheduler_is_refused(run, mix):
    done = run("profile", mix, "--scheduler", "slurm")
    assert done.status == 2
    assert "known are threads, processes" in done.line


def test_a_path_that_does_not_exist(run):
    done = run("profile", "nowhere")
    assert done.status == 2
    assert done.line == "nowhere: no such file or directory; name the folder of a trace"


def test_a_plain_file(run, desk):
    (desk / "notes.txt").write_text("hello")
    done = run("profile", "notes.txt")
    assert done.status == 2
    assert done.line.startswith("notes.txt: is a file, not a trace; ")


def test_an_empty_folder(run, desk):
    (desk / "empty").mkdir()
    done = run("profile", "empty")
    assert done.status == 2
    assert done.line.startswith("empty: is an empty folder; ")


def test_folder_without_a_trace_is_refused(run, desk):
    (desk / "other").mkdir()
    (desk / "other" / "photo.jpg").write_bytes(b"\xff\xd8")
    assert run("profile", "other").line.startswith("other: is not a trace, but has ")
    (desk / "other" / "run.cubex").write_bytes(b"")
    done = run("profile", "other")
    assert done.status == 2
    assert "a profile of Score-P, which Vani does not read; " in done.line


@pytest.mark.parametrize("name", ["v3-killed-2r", "v3-truncated-s3dio-8r"])
@pytest.mark.parametrize("command", ["profile", "convert"])
def test_aborted_trace_is_refused_in_one_line(run, desk, command, name):
    extra = ["store"] if command == "convert" else ["-o", "p.yaml"]
    done = run(command, TRACES / name, *extra)
    assert (done.status, done.out) == (2, "")
    assert "is what an aborted run leaves" in done.line
    assert "let the program reach MPI_Finalize" in done.line
    assert list(desk.iterdir()) == []


def test_a_job_with_a_misspelt_key(run, desk, mix):
    (desk / "job.yaml").write_text("schema: vani.job/1\nscheduler: slurm\nnoeds: 3\n")
    done = run("profile", mix, "--job", "job.yaml")
    assert done.status == 2
    assert done.line == "job.yaml:3: unknown key 'noeds' at the top; did you mean 'nodes'?"


def test_a_system_with_a_misspelt_key(run, desk, mix):
    (desk / "system.yaml").write_text(
        "schema: vani.system/2\nname: x\ncompute: {nodes: 3, cores_pr_node: 2}\n"
    )
    done = run("profile", mix, "--system", "system.yaml")
    assert done.status == 2
    assert (
        "system.yaml:3: unknown key 'cores_pr_node' in compute; did you mean 'cores_per_node'?" in done.line
    )


def test_system_outside_the_bundle(run, mix):
    done = run("profile", mix, "--system", "lasen")
    assert done.status == 2
    assert "'lasen'" in done.line
    assert "lassen" in done.line


@pytest.mark.parametrize("option", ["--job", "--system"])
def test_missing_document_is_refused(run, mix, option):
    done = run("profile", mix, option, "nowhere.yaml")
    assert done.status == 2
    assert "nowhere.yaml" in done.line


def test_wrong_document_is_refused_as_a_profile(run, desk):
    (desk / "p.yaml").write_text("schema: vani.job/1\n")
    assert run("advise", "nowhere.yaml").status == 2
    done = run("advise", "p.yaml")
    assert done.status == 2
    assert done.line == "p.yaml:1: schema is 'vani.job/1', facts of a job, for `vani profile TRACE --job FILE`; known here is vani.profile/4"


def test_a_graph_in_an_unknown_format(run, mix, desk):
    done = run("profile", mix, "--graph", "deps.png", "-o", "p.yaml")
    assert done.status == 2
    assert done.line == "deps.png: unknown graph format '.png'; use a name that ends in .dot or .json"
    assert list(desk.iterdir()) == []


def test_store_does_not_overwrite_unrelated_files(run, desk, mix):
    (desk / "mine").mkdir()
    (desk / "mine" / "thesis.tex").write_text("years of work")
    done = run("convert", mix, "mine")
    assert done.status == 2
    assert done.line == "mine: exists and is not a store; name a new folder"
    assert (desk / "mine" / "thesis.tex").read_text() == "years of work"


def test_a_message_keeps_a_hostile_path_on_one_line(run):
    done = run("profile", "a\nb\x1b[31m")
    assert done.line.startswith("a\\nb\\x1b[31m: no such file")


def test_a_command_of_the_centre_names_its_extra():
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from vani.cli.main import main\n"
        "main(['history', 'list'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"vani: .* needs SQLAlchemy; pip install 'vani-io\[centre\]'\n", done.stderr, re.IGNORECASE)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("advise", "profile.yaml"), "profile.yaml:1: schema vani.profile/2 is an older version; make it again with `vani profile TRACE`"),
        (("diff", "profile.yaml", "profile.yaml"), "profile.yaml:1: schema vani.profile/2 is an older version; make it again with `vani profile TRACE`"),
        (("apply", "advice.yaml"), "advice.yaml:1: schema vani.advice/1 is an older version; make it again with `vani advise PROFILE`"),
        (
            ("systems", "show", "./system.yaml"),
            "system.yaml:1: schema vani.system/1 is an older version; make it again with `vani systems detect`, or by hand as in docs/machines.md",
        ),
    ],
)
def test_document_of_an_older_version_is_refused_with_the_command_that_makes_it_again(run, desk, arguments, line):
    for name, version in (("profile", 2), ("advice", 1), ("system", 1)):
        (desk / f"{name}.yaml").write_text(f"schema: vani.{name}/{version}\n")
    done = run(*arguments)
    assert (done.status, done.out, done.line) == (2, "", line)
