"""`vani apply`, with an `lfs` that stores default layouts in a hidden file of each folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from repository import ROOT

from vani.schema.advice import Advice

LFS = """#!/bin/sh
# lfs setstripe -c COUNT -S SIZE FOLDER | setstripe -d FOLDER | setstripe --yaml=FILE FOLDER | getstripe -d [--raw|--yaml] FOLDER
command=$1; eval folder=\\${$#}
layouts=$LAYOUTS/$(printf %s "$folder" | tr / _)
case "$command $2" in
"setstripe -c") [ -z "$IGNORE" ] && printf 'stripe_count: %s stripe_size: %s\\n' "$3" 4194304 >"$layouts" ;;
"setstripe -d") rm -f "$layouts" ;;
"setstripe --yaml="*) cp "${2#--yaml=}" "$layouts" ;;
"getstripe -d") cat "$layouts" 2>/dev/null || echo 'stripe_count: 1 stripe_size: 1048576' ;;
esac
exit 0
"""


@pytest.fixture
def lfs(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the layouts that `lfs` has set."""
    layouts, programs = desk.parent / "layouts", desk.parent / "programs"
    layouts.mkdir()
    programs.mkdir()
    (programs / "lfs").write_text(LFS)
    (programs / "lfs").chmod(0o755)
    monkeypatch.setenv("LAYOUTS", str(layouts))
    monkeypatch.setenv("IGNORE", "")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return layouts


@pytest.fixture
def folder(run, desk: Path, lfs: Path) -> Path:
    """An empty folder, for which advice.yaml recommends `-c 8 -S 4M` and two hints."""
    run("advise", ROOT / "tests" / "golden" / "v3-haccio-ssf-8r.yaml", "--select", "MAT001", "-o", "advice.yaml")
    advice = Advice.load("advice.yaml")
    place = desk / "out put"
    place.mkdir()
    lines = [
        f"lfs setstripe -c 8 -S 4M '{place}'",
        "printf '%s\\n' 'cb_nodes 8' 'romio_cb_write enable' >> romio-hints",
        'export ROMIO_HINTS="$PWD/romio-hints"',
    ]
    item = advice.recommendations[0].model_copy(update={"apply": lines, "severity": "high"})
    advice.model_copy(update={"recommendations": [item]}).save("advice.yaml")
    return place


def test_layout_is_set_checked_and_undone(run, desk, folder, lfs):
    done = run("apply", "advice.yaml", "--dry-run")
    assert (done.status, list(lfs.iterdir())) == (0, [])
    assert "Dry run: leave out --dry-run" in done.out
    assert "apply.sh" not in done.out
    done = run("apply", "advice.yaml")
    assert done.status == 0
    assert f"ok      {folder}: is empty\n" in done.out
    assert f"ok      {folder}: new files get -c 8 -S 4M\n" in done.out
    assert 'export ROMIO_HINTS="$PWD/romio-hints"' in done.out
    assert len(list(lfs.iterdir())) == 1
    # The advice may have changed by then; the applied script is the one that is undone.
    Path("advice.yaml").write_text(Path("advice.yaml").read_text().replace("out put", "other"))
    assert "setstripe" in run("apply", "advice.yaml", "--undo").out
    assert "stripe_count: 1" in next(lfs.iterdir()).read_text()
    assert not Path("vani-apply-state").exists()
    assert run("apply", "advice.yaml", "--undo").status == 2


def test_unusable_setting_is_a_failed_check(run, folder, lfs, monkeypatch):
    monkeypatch.setenv("IGNORE", "yes")
    (folder / "old").touch()
    Path("job.out").write_text("key = cb_nodes         value = 2\nkey = romio_cb_write  value = enable\n")
    done = run("apply", "advice.yaml", "--job-output", "job.out")
    assert done.status == 1
    assert f"note    {folder}: has 1 entry; existing files keep their layout\n" in done.out
    assert "the layout was not applied (lfs getstripe -d shows stripe_count 1, not 8" in done.out
    assert "FAILED  hint cb_nodes: MPI reports 2, 8 was requested\n" in done.out
    assert "ok      hint romio_cb_write" in done.out


def test_another_advice_does_not_overwrite_the_layouts_of_before(run, folder, lfs):
    run("apply", "advice.yaml")
    Path("other.yaml").write_text(Path("advice.yaml").read_text().replace("-c 8", "-c 4"))
    done = run("apply", "other.yaml")
    assert done.status == 2
    assert "contains the layouts from before another advice" in done.line


def test_missing_lfs_prevents_any_work(run, folder, lfs, monkeypatch):
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in folders if not Path(one, "lfs").exists()))
    done = run("apply", "advice.yaml")
    assert done.status == 2
    assert "lfs is not installed here" in done.line
