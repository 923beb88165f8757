"""Attributes of new files on BeeGFS, DAOS and CephFS, set and undone by the script, with stand-ins for their commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vani.cli.apply import run_script
from vani.collect.file_systems import layout_problem
from vani.errors import InputError
from vani.render.script import Step, render_steps

# Print the output shown in the manuals: doc.beegfs.io (Striping), daos filesystem get-attr
# (control/cmd/daos/filesystem.go).
BEEGFS_CTL = """#!/bin/sh
eval folder=\\${$#}
echo "beegfs-ctl $*" >>"$RECORD"
kept=$KEPT/$(printf %s "$folder" | tr / _)
case $1 in
--getentryinfo)
  read -r targets chunk <"$kept" 2>/dev/null || { targets=4 chunk=512K; }
  printf 'EntryID: 0-5D36F5EC-1\\nStripe pattern details:\\n+ Type: RAID0\\n+ Chunksize: %s\\n' "$chunk"
  printf '+ Number of storage targets: desired: %s\\n+ Storage Pool: 1 (Default)\\n' "$targets" ;;
--setpattern) echo "${2#--numtargets=} ${3#--chunksize=}" >"$kept" ;;
esac
"""
BEEGFS = """#!/bin/sh
eval folder=\\${$#}
echo "beegfs $*" >>"$RECORD"
kept=$KEPT/$(printf %s "$folder" | tr / _)
case $2 in
info) exec sh "$OLD" --getentryinfo "$folder" ;;
set) size=${4#--chunk-size=}; echo "${3#--num-targets=} ${size%iB}" >"$kept" ;;
esac
"""
DAOS = """#!/bin/sh
eval folder=\\${$#}
echo "daos $*" >>"$RECORD"
kept=$KEPT/$(printf %s "$folder" | tr / _)
case $2 in
get-attr) printf 'Object Class = %s\\nObject Chunk Size = 1048576\\n' "$(cat "$kept" 2>/dev/null || echo "$CLASS")" ;;
set-attr) echo "$4" >"$kept" ;;
reset-oclass) rm "$kept" ;;
esac
"""
GETFATTR = """#!/bin/sh
eval folder=\\${$#}
kept=$KEPT/$(printf %s "$folder" | tr / _)
if [ -e "$kept" ]; then printf '%s pool=data' "$(cat "$kept")"; else
  echo "$folder: ceph.dir.layout: ${REASON:-No such attribute}" >&2; exit 1; fi
"""
SETFATTR = """#!/bin/sh
eval folder=\\${$#}
printf '%s|' setfattr "$@" >>"$RECORD"
kept=$KEPT/$(printf %s "$folder" | tr / _)
case $1 in
-n) printf %s "$4" >"$kept" ;;
-x) rm "$kept" ;;
esac
"""
PATTERN = "beegfs-ctl --setpattern --numtargets=16 --chunksize=1M"
CLASS = "daos filesystem set-attr --oclass SX --path"
WIDE = "stripe_unit=1048576 stripe_count=8 object_size=67108864"
STRIPES = f"setfattr -n ceph.dir.layout -v '{WIDE}'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("bin", "kept", "a b"):
        (tmp_path / name).mkdir()
    (tmp_path / "old").write_text(BEEGFS_CTL)
    for name, value in {"RECORD": "record", "KEPT": "kept", "OLD": "old"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("CLASS", "UNKNOWN")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("VANI_STATE", str(tmp_path / "state"))
    return tmp_path / "a b"


def install(folder: Path, name: str, text: str) -> None:
    (folder.parent / "bin" / name).write_text(text)
    (folder.parent / "bin" / name).chmod(0o755)


def run(folder: Path, command: str, option: str) -> subprocess.CompletedProcess[str]:
    script = render_steps([Step("BEE001", "why", [f"{command} '{folder}'"])], maker="a test")
    return subprocess.run(["sh", "-c", script, "sh", option], capture_output=True, text=True, check=False)


def kept(folder: Path) -> str | None:
    path = folder.parent / "kept" / str(folder).replace("/", "_")
    return path.read_text().strip() if path.exists() else None


@pytest.mark.parametrize(("program", "text"), [("beegfs-ctl", BEEGFS_CTL), ("beegfs", BEEGFS)])
def test_pattern_on_beegfs_is_set_and_undone(folder, program, text):
    install(folder, program, text)
    for _ in range(2):
        assert run(folder, PATTERN, "--apply").returncode == 0
        assert kept(folder) == "16 1M"
    assert run(folder, PATTERN, "--undo").returncode == 0
    assert kept(folder) == "4 512K"
    assert [*(folder.parent / "state").iterdir()] == []


@pytest.mark.parametrize(("before", "after"), [("UNKNOWN", None), ("EC_16P3GX", "EC_16P3GX")])
def test_object_class_on_daos_is_set_and_undone(folder, monkeypatch, before, after):
    install(folder, "daos", DAOS)
    monkeypatch.setenv("CLASS", before)
    assert run(folder, CLASS, "--apply").returncode == 0
    assert kept(folder) == "SX"
    assert run(folder, CLASS, "--undo").returncode == 0
    assert kept(folder) == after


@pytest.mark.parametrize("before", [None, "stripe_unit=65536 stripe_count=1 object_size=1048576"])
def test_layout_on_cephfs_is_set_and_its_earlier_state_restored(folder, before):
    install(folder, "getfattr", GETFATTR)
    install(folder, "setfattr", SETFATTR)
    if before:
        (folder.parent / "kept" / str(folder).replace("/", "_")).write_text(before)
    done = run(folder, STRIPES, "--apply")
    assert (done.returncode, kept(folder)) == (0, WIDE)
    # A person can paste the line: blanks are quoted.
    assert done.stdout == f"{STRIPES} '{folder}'\n"
    assert run(folder, STRIPES, "--undo").returncode == 0
    assert kept(folder) == before
    assert [*(folder.parent / "state").iterdir()] == []


def test_layout_on_cephfs_stays_where_the_file_system_does_not_answer(folder, monkeypatch):
    monkeypatch.setenv("REASON", "Operation not supported")
    install(folder, "getfattr", GETFATTR)
    install(folder, "setfattr", SETFATTR)
    done = run(folder, STRIPES, "--apply")
    assert (done.returncode, (folder.parent / "record").exists()) == (1, False)
    assert "is not known, so it is not changed" in done.stderr


@pytest.mark.parametrize("now", [WIDE, "stripe_unit=65536 stripe_count=8 object_size=67108864"])
def test_layout_on_cephfs_is_read_back(folder, now):
    install(folder, "getfattr", GETFATTR)
    (folder.parent / "kept" / str(folder).replace("/", "_")).write_text(now)
    differs = "the layout was not applied (it has a stripe unit of 65536, 8 stripes, objects of 67108864)"
    assert layout_problem(folder, STRIPES) == (None if now == WIDE else (differs, False))


@pytest.mark.parametrize("command", [PATTERN, CLASS])
def test_nothing_is_set_if_the_current_value_is_unknown(folder, command):
    install(folder, command.split()[0], '#!/bin/sh\necho "$0 $*" >>"$RECORD"\n')
    done = run(folder, command, "--apply")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not known, so it is not changed" in done.stderr
    assert len(Path(folder.parent / "record").read_text().splitlines()) == 1


@pytest.mark.parametrize("command", [PATTERN, CLASS])
def test_nothing_is_done_without_a_word_or_without_the_program(folder, command):
    script = render_steps([Step("BEE001", "why", [f"{command} '{folder}'"])], maker="a test")
    shown = subprocess.run(["sh", "-c", script, "sh"], capture_output=True, text=True, check=True).stdout
    assert f"{command} '{folder}'\n" in shown
    assert f"# {command.split()[0]} is not installed here" in shown
    done = run(folder, command, "--apply")
    assert done.returncode == 1
    assert f"{command.split()[0]} is not installed here" in done.stderr
    assert not (folder.parent / "state").exists()
    with pytest.raises(InputError) as refused:
        run_script(script, folder.parent / "state")
    assert refused.value.where == command.split()[0]


@pytest.mark.parametrize(
    "line",
    [
        "beegfs-ctl --setpattern --numtargets=16 --chunksize=1M --force /f",
        "beegfs-ctl --removetarget /f",
        "daos filesystem copy --src /f --dst /f",
        "daos filesystem set-attr --oclass $(id) --path /f",
        "daos container destroy --path /f",
        "setfattr -n user.layout -v 'stripe_unit=1 stripe_count=1 object_size=1' /f",
        "setfattr -n ceph.dir.layout -v 'stripe_unit=1 stripe_count=1 object_size=1 pool=other' /f",
    ],
)
def test_other_commands_of_these_programs_are_only_printed_for_the_job(folder, line):
    for name in ("beegfs-ctl", "daos", "setfattr"):
        install(folder, name, '#!/bin/sh\necho "$0 $*" >>"$RECORD"\n')
    script = render_steps([Step("X", "why", [line])], maker="a test")
    done = subprocess.run(["sh", "-c", script, "sh", "--apply"], capture_output=True, text=True, check=False)
    assert (done.returncode, (folder.parent / "record").exists()) == (0, False)
