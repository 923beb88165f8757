"""Commands on Darshan logs: copies, mixed folders, protection from overwriting, checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import vani
from vani.errors import InputError

LOGS = Path(__file__).parents[1] / "data" / "darshan"
SHARED_FILE = LOGS / "v3-ior-ssf-posix-8r.darshan"



def test_copy_of_a_log_counts_once_and_is_noted_on_the_first_screen(tmp_path, run):
    for name in ("a", "b"):
        (tmp_path / f"{name}.darshan").write_bytes(SHARED_FILE.read_bytes())
    profile = vani.profile(tmp_path)
    assert (profile.workflow.processes, profile.apps[0].instances) == (8, 1)
    assert profile.provenance["traces.path"].endswith(f"b.darshan is a copy of {tmp_path / 'a.darshan'}")
    result = run("profile", str(tmp_path), "-o", str(tmp_path / "p.yaml"))
    assert "copies count once" in result.err + result.out


def test_logs_and_traces_together_are_refused_in_one_line(tmp_path):
    (tmp_path / "a.darshan").write_bytes(SHARED_FILE.read_bytes())
    shutil.copytree(LOGS.parent / "traces" / "v3-cm1like-16r", tmp_path / "trace")
    with pytest.raises(
        InputError, match="counts and calls are not one workload; profile them apart"
    ) as caught:
        vani.profile(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["profile", "advise", "report", "check"])
def test_log_is_not_overwritten_by_its_own_profile(tmp_path, run, command):
    log = tmp_path / "a.darshan"
    log.write_bytes(SHARED_FILE.read_bytes())
    result = run(command, str(log), "-o", str(log))
    assert result.status == 2
    assert "is an input of this command" in result.err + result.out
    assert log.read_bytes() == SHARED_FILE.read_bytes()


@pytest.mark.parametrize("name", ["new.darshan", "new.darshan_partial", "other.darshan"])
def test_output_named_like_a_log_of_a_folder_is_refused(tmp_path, run, name):
    """The next profile of the folder would call it damaged, and an existing log would be lost."""
    for log in ("a", "other"):
        (tmp_path / f"{log}.darshan").write_bytes(SHARED_FILE.read_bytes())
    result = run("profile", tmp_path / "a.darshan", "-o", tmp_path / name)
    assert result.status == 2
    assert result.line.startswith(f"{tmp_path / name}: has the name of a Darshan log, ")
    assert sorted(path.name for path in tmp_path.glob("*.darshan*")) == ["a.darshan", "other.darshan"]
    assert (tmp_path / "other.darshan").read_bytes() == SHARED_FILE.read_bytes()


def test_a_log_is_checked_against_a_policy_and_a_baseline(tmp_path, run):
    baseline, policy = tmp_path / "baseline.yaml", tmp_path / "policy.toml"
    without_dxt = LOGS / "v3-ior-large16m-ssf-2r.darshan"
    assert run("check", str(without_dxt), "--save", str(baseline)).status == 0
    assert run("check", str(without_dxt), "--baseline", str(baseline)).status == 0
    policy.write_text(
        'schema = "vani.policy/1"\n[[check.budget]]\nname = "writes"\nexpect = "workflow.io.ops.write <= 4"\n'
    )
    result = run("check", str(without_dxt), "--policy", str(policy))
    assert result.status == 1, result.err + result.out
