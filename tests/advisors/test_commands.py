"""`vani advise` and `vani explain`: their output on stdout, in files and on stderr."""

from __future__ import annotations

import json

import pytest
import yaml
from builders import profile, shared
from click.testing import CliRunner

from vani.cli.advise import command as advise
from vani.cli.explain import command as explain
from vani.errors import InputError
from vani.units import GiB


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "profile.yaml"
    profile([shared("/data/out", written=GiB, time_s=400, busy_s=50)]).save(path)
    return str(path)


def run(command, *words):
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_yaml_is_written_only_to_stdout(path):
    done = run(advise, path, "--system", "generic-lustre")
    assert yaml.safe_load(done.stdout)["recommendations"][0]["rule"] == "MAT001"
    assert done.stderr == ""


def test_advice_is_written_to_a_file(path, tmp_path):
    done = run(advise, path, "-o", str(tmp_path / "advice.yaml"), "--select", "LUS,MAT", "--ignore", "LUS")
    assert done.stdout == ""
    assert done.stderr.startswith("I/O takes 50 % of the run in the slowest process (rank 3), 60 % in at least one: it matters.")
    tree = yaml.safe_load((tmp_path / "advice.yaml").read_text())
    assert [one["rule"] for one in tree["recommendations"]] == ["MAT001"]
    assert tree["no_recommendation"] == []


def test_other_formats(path):
    assert json.loads(run(advise, path, "--format", "json").stdout)["schema"] == "vani.advice/3"
    text = run(advise, path, "--format", "text", "--system", "generic-lustre").stdout
    assert text.startswith("I/O takes 50 % of the run in the slowest process (rank 3), 60 % in")
    assert "typical figures" in text


def test_a_rule_is_explained():
    assert run(explain, "stripe-count").stdout.startswith("LUS002 stripe-count\n\n")
    with pytest.raises(InputError, match="did you mean"):
        run(explain, "LUS02")


def test_rules_are_listed():
    lines = run(explain).stdout.splitlines()
    assert any(line.startswith("MAT001  io-share ") for line in lines)
