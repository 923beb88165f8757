"""The hook in jobs: what it reads, sets and refuses."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path

import pytest

from vani.centre.service import task_prolog

USER = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def state(tmp_path, monkeypatch):
    folder = tmp_path / "hook"
    folder.mkdir(mode=0o755)
    entry = {"layouts": [], "hints": {"solver": {"ROMIO_HINTS": "/h", "LD_PRELOAD": "/evil.so"}}}
    (folder / f"{USER}.json").write_text(json.dumps(entry))
    (folder / f"{USER}.json").chmod(0o644)
    return folder


def hook(state, monkeypatch, uid=1234, **variables):
    said = []
    monkeypatch.setattr(task_prolog.os, "getuid", lambda: uid)
    monkeypatch.setattr(task_prolog.pwd, "getpwuid", lambda _: pwd.struct_passwd((USER, "", 0, 0, "", "", "")))
    task_prolog.main({"SLURM_JOB_NAME": "solver", **variables}, str(state), said.append)
    return said


def test_only_listed_variables_are_set(state, monkeypatch):
    assert hook(state, monkeypatch) == ["export VANI_HOOK=1\n", "export ROMIO_HINTS=/h\n"]


def test_nothing_is_done_as_root_or_twice(state, monkeypatch):
    assert hook(state, monkeypatch, uid=0) == []
    assert hook(state, monkeypatch, VANI_HOOK="1") == []


def test_a_link_and_a_file_that_others_can_write_are_refused(state, monkeypatch):
    (state / f"{USER}.json").chmod(0o666)
    with pytest.raises(ValueError, match="not a file of the centre"):
        hook(state, monkeypatch)
    (state / f"{USER}.json").rename(state / "real.json")
    (state / f"{USER}.json").symlink_to(state / "real.json")
    with pytest.raises(OSError, match="symbolic"):
        hook(state, monkeypatch)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_users_read_their_entry_in_a_folder_that_they_cannot_list():
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        entry = Path(folder) / f"{nobody.pw_name}.json"
        entry.write_text('{"hints": {}}')
        entry.chmod(0o644)
        Path(folder).chmod(0o711)
        child = os.fork()
        if not child:
            status = 1
            try:
                os.setuid(nobody.pw_uid)
                status = int(task_prolog.read_state(folder, nobody.pw_name) != {"hints": {}})
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
