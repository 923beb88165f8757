"""The lines of staging advice, run in a shell around a small program: where bytes go, and what is copied back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from builders import file, profile, system

from vani.advisors.burst_buffer.staging_lines import Plan, lines
from vani.advisors.judge import advise_document
from vani.models.staging import Tier

SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]
NAMES = ["tmp", "my tmp", "it's", 'say "x"', "$(touch pwned)", "-rf"]

pytestmark = pytest.mark.skipif(not SHELLS, reason="there is no sh")


def printed(*folders: Path, near: Path, nodes: int | None = 1, **more) -> list[str]:
    tier = Tier(
        "near", "node_local", "nvme", str(near), uses_memory=False, capacity=None, read=None, write=None
    )
    plan = Plan(
        "run.1",
        tuple(map(str, folders)),
        total=1,
        per_node=1,
        nodes=nodes,
        launcher_name="slurm" if nodes else None,
        **more,
    )
    return lines(tier, plan)


def run(
    script: list[str], cwd: Path, shell: str = "sh", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = "\n".join(script)
    path = f"{cwd}:/usr/bin:/bin"
    return subprocess.run(
        [shell, "-c", command],
        cwd=cwd,
        env={"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def writes(folder: Path, name: str = "a", text: str = "new") -> str:
    """A program that writes a file and reads it again from the same place."""
    return f"""python3 -c 'import sys, pathlib
where = pathlib.Path(sys.argv[1]); where.mkdir(exist_ok=True)
(where / sys.argv[2]).write_text(sys.argv[3])
print(where.resolve(), (where / sys.argv[2]).read_text())' {_word(folder)} {name} {text}"""


def _word(path: Path) -> str:
    import shlex  # noqa: PLC0415

    return shlex.quote(str(path))


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.sampled(12)
def test_bytes_land_on_the_node_and_come_back(tmp_path, shell, name, exists):
    folder, near = tmp_path / "fs" / name, tmp_path / "near it"
    if exists:
        folder.mkdir(parents=True)
        (folder / "old").write_text("old")
        (folder / "a").write_text("of the run before")
    done = run([*printed(folder, near=near), writes(folder)], tmp_path, shell)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{near / 'run.1'} new\n"
    assert folder.is_dir()
    assert not folder.is_symlink()
    wanted = {"a": "new"} | ({"old": "old"} if exists else {})
    assert {path.name: path.read_text() for path in folder.iterdir()} == wanted
    # Nothing remains on the node or next to the folder.
    assert list(near.iterdir()) == []
    assert [path.name for path in folder.parent.iterdir()] == [name]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("end", ["exit 3", "set -e; false", "kill -TERM $$; sleep 5"])
def test_output_of_a_failed_run_is_brought_back(tmp_path, shell, end):
    folder, other, near = tmp_path / "fs" / "proj", tmp_path / "fs" / "diff", tmp_path / "near"
    folder.mkdir(parents=True)
    (folder / "old").write_text("old")
    script = [*printed(folder, other, near=near), writes(folder), end, writes(other)]
    done = run(script, tmp_path, shell)
    assert done.returncode == {"exit 3": 3, "set -e; false": 1}.get(end, 143)
    assert sorted(path.name for path in folder.iterdir()) == ["a", "old"]
    assert list(other.iterdir()) == []
    assert list(near.glob("**/a")) == []


def test_killed_script_is_completed_by_the_next(tmp_path):
    folder, near = tmp_path / "fs" / "proj", tmp_path / "near"
    folder.mkdir(parents=True)
    (folder / "old").write_text("old")
    begun = printed(folder, near=near)
    assert run([*begun, writes(folder), "kill -KILL $$"], tmp_path).returncode != 0
    assert folder.is_symlink()
    done = run([*begun, writes(folder, "b")], tmp_path)
    assert done.returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "old"]


def test_users_link_is_restored_afterwards(tmp_path):
    folder, near, real = tmp_path / "proj", tmp_path / "near", tmp_path / "elsewhere"
    real.mkdir()
    folder.symlink_to(real)
    done = run([*printed(folder, near=near), writes(folder)], tmp_path)
    assert done.stdout.startswith(str(near))
    assert folder.readlink() == real
    assert (real / "a").read_text() == "new"


def test_a_folder_that_waits_from_before_is_never_overwritten(tmp_path):
    folder, near = tmp_path / "proj", tmp_path / "near"
    for path in (folder, tmp_path / "proj.before"):
        path.mkdir()
        (path / "kept").write_text(path.name)
    done = run([*printed(folder, near=near), writes(folder)], tmp_path)
    assert "proj.before already exists: move it away" in done.stderr
    assert (folder / "a").read_text() == "new"
    assert (tmp_path / "proj.before" / "kept").read_text() == "proj.before"


def test_each_node_has_its_folder_and_returns_its_files(tmp_path):
    folder, near = tmp_path / "fs" / "my tmp", tmp_path / "near"
    fake = tmp_path / "srun"
    fake.write_text(
        '#!/bin/sh\nwhile case $1 in -*) true;; *) false;; esac; do shift; done\n"$@"; echo node >>ran\n'
    )
    fake.chmod(0o755)
    script = [*printed(folder, near=near, nodes=2), writes(folder)]
    done = run(script, tmp_path, SLURM_JOB_NUM_NODES="2")
    assert done.returncode == 0, done.stderr
    assert (folder / "a").read_text() == "new"
    # Once to create the folder, once to copy back its contents.
    assert (tmp_path / "ran").read_text() == "node\n" * 2


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", ["exit 0", "exit 3"])
@pytest.mark.sampled(12)
def test_checkpoints_reach_the_file_system(tmp_path, shell, name, end):
    folder, near = tmp_path / "fs" / name, tmp_path / "near"
    script = [*printed(folder, near=near, stage_out=True), writes(near / "run.1", "ckpt.1"), end]
    done = run(script, tmp_path, shell)
    assert done.returncode == int(end[-1]), done.stderr
    assert done.stdout == f"{near / 'run.1'} new\n"
    assert [path.name for path in folder.iterdir()] == ["ckpt.1"]
    assert (folder / "ckpt.1").read_text() == "new"


def test_checkpoints_are_drained_during_the_run_except_the_current_one(tmp_path):
    folder, near = tmp_path / "fs" / "ckpt", tmp_path / "near"
    script = printed(folder, near=near, stage_out=True)
    there = near / "run.1"
    script += [
        writes(there, "whole"),
        f"touch -d '5 minutes ago' {_word(there / 'whole')}",
        writes(there, "at_hand"),
        "drain_run_1 '-mmin +1'",
        f"ls {_word(folder)}",
    ]
    done = run(script, tmp_path)
    assert done.stdout.splitlines()[-1] == "whole", done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["at_hand", "whole"]


def test_the_whole_advice_takes_effect(tmp_path):
    folder, near = tmp_path / "fs" / "it's my run", tmp_path / "near"
    folder.mkdir(parents=True)
    files = [
        file(
            f"{folder}/part.{n}",
            processes=2,
            written=2**20,
            read=2**20,
            role="intermediate",
            apps=("a", "b"),
            time_s=4,
        )
        for n in range(4)
    ]
    edge = {"producer": "a", "consumer": "b", "files": 4, "bytes_written": 2**22, "bytes_read": 2**22}
    advice = advise_document(
        profile(files, nodes=1, change={"workflow.app_dependencies": [edge]}),
        system(mount=str(tmp_path / "fs"), node_local=str(near)),
        select=["BB002"],
    )
    (one,) = advice.recommendations
    done = run([*one.apply, writes(folder, "part.0")], tmp_path)
    assert done.stdout == f"{near}/it_s_my_run new\n", done.stderr
    assert (folder / "part.0").read_text() == "new"
    assert list(near.iterdir()) == []
