"""Names of executables, from folder names given by Recorder."""

from __future__ import annotations

import pytest
from tiny_traces import write_tiny

import vani
from vani.readers.open import open_trace
from vani.readers.programs import app_name, app_of_folder
from vani.schema.job import Job


@pytest.mark.parametrize(
    ("directory", "app"),
    [
        # Default names of 2.5p and of 2.5g and 3.0 (format document, section 2); contract, "app".
        ("node01-anna-cm1.exe-4711-093012.123", "cm1.exe"),
        ("093012.12-node01-anna-cm1.exe-4711", "cm1.exe"),
        # Hosts with hyphens: login nodes, addresses, racks.
        ("143000.12-n1-login-01-alice-xhpl-999", "xhpl"),
        ("n1-login-01-alice-xhpl-999-143000.123", "xhpl"),
        ("143000.12-login-01-alice-xhpl-999", "xhpl"),
        ("143000.12-login-3-alice-my-solver-4711", "my-solver"),
        ("143000.12-ip-10-0-12-34-ec2-user-xhpl-1", "user-xhpl"),  # the user's name has a hyphen: see below
        ("143000.12-ip-10-0-12-34-ubuntu-xhpl-1", "xhpl"),
        ("143000.12-c1-0c0s3n2-alice-xhpl-1", "xhpl"),
        ("143000.12-hpc-gpu-04.cluster.example-alice-xhpl-1", "xhpl"),
        ("143000.12-dragon-login2-alice-xhpl-1", "xhpl"),
        ("143000.12-juwels-r2i0n4-alice-xhpl-1", "xhpl"),
        ("143000.12-cluster-n12-alice-xhpl-1", "xhpl"),
        ("143000.12-hpc-login-node-01-alice-xhpl-1", "xhpl"),
        # Programs with hyphens, on hosts without.
        ("143000.12-host-alice-my-solver-999", "my-solver"),
        ("143000.12-node01-alice-my-solver-999", "my-solver"),
        ("143000.12-node01-alice-solver-2-999", "solver-2"),
        ("143000.12-node01-alice-heat-2d-999", "heat-2d"),
        ("143000.12-node01-ab123456-my-solver-999", "my-solver"),
        ("143000.12-node-01-alice-my-solver-v2-999", "my-solver-v2"),
        # getlogin(3) failed.
        ("093012.12-login-3-(null)-my-app-4711", "my-app"),
        ("login-3-user-unknown-my-app-4711-093012.123", "my-app"),
        ("login-3-(null)-xhpl-4711-093012.123", "xhpl"),
        # Names given by people.
        ("003-mProject", "mProject"),
        ("01b-weather", "weather"),
        ("ior_2", "ior"),
        ("ior", "ior"),
        ("42", "42"),
    ],
)
def test_the_app_is_named_by_the_directory(directory, app):
    assert app_name(directory) == app


@pytest.mark.parametrize(
    ("directory", "folder", "app"),
    [
        ("143000.12-ip-10-0-12-34-ec2-user-xhpl-1", "ec2-user", "xhpl"),
        ("143000.12-alpha-beta-gamma-alice-xhpl-1", "alice", "xhpl"),
        ("143000.12-alpha-beta-alice-my-solver-1", "alice", "my-solver"),
        ("143000.12-host-anna-maria-my-solver-1", "anna-maria", "my-solver"),
        # `data` and `work` are common folders.
        ("143000.12-host-alice-data-gen-1", "data", "data-gen"),
        ("143000.12-host-alice-work-1", "work", "work"),
    ],
)
def test_folder_with_the_users_name_marks_the_end_of_the_host(directory, folder, app):
    assert app_of_folder(directory, lambda name: name == folder).name == app


def test_the_paths_of_the_trace_and_its_own_name_the_user(tmp_path):
    # The tiny trace writes /tmp/x and similar files; this one is in the user's home.
    trace = tmp_path / "home" / "alice" / "143000.12-alpha-beta-alice-xhpl-1"
    trace.mkdir(parents=True)
    write_tiny(trace, "3.0")
    assert open_trace(trace).app == "xhpl"


def test_possibly_truncated_name_is_reported_as_from_the_folder(tmp_path):
    doubtful, plain = tmp_path / "143000.12-n1-login-01-alice-xhpl-999", tmp_path / "143000.12-node01-alice-xhpl-999"
    for folder in (doubtful, plain):
        folder.mkdir()
        write_tiny(folder, "3.0")
    for quick in (False, True):
        profile = vani.profile(doubtful, quick=quick)
        assert profile.apps[0].name == "xhpl"
        said = profile.provenance["traces.app"]
        assert "host n1-login-01, user alice, program xhpl" in said
        assert "job.yaml" in said
        named = vani.profile(doubtful, job=Job(apps={doubtful.name: "hpl"}), quick=quick)
        assert named.apps[0].name == "hpl"
        assert "traces.app" not in named.provenance
        assert "traces.app" not in vani.profile(plain, quick=quick).provenance
