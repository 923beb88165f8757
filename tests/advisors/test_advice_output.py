"""The output of `vani advise`, and the sources of its settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from builders import profile, shared, system
from click.testing import CliRunner
from generators.rules import pages

from vani.advisors.catalogue import page_text, patterns, rules
from vani.advisors.judge import advise_document
from vani.cli.main import commands, main
from vani.errors import InputError
from vani.render.advice import to_markdown
from vani.render.code_hosts import advice_to_sarif
from vani.schema.advice import Advice
from vani.site import read_settings
from vani.units import GiB

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "tests" / "data" / "sarif-schema-2.1.0.json"
NAMES = ["d", "a|b", "`x`", "``y`` z", "<b>", "[x](y)", "a\nb", "\x1b[31m", "ü n", "#h", "%41", "a:b", "\u202e"]


def files(*names):
    return [shared(f"/lustre/{n}/out", written=20 * GiB, time_s=400, busy_s=50 - i) for i, n in enumerate(names)]


def advice(*names, **settings) -> Advice:
    return advise_document(profile(files(*names or ["d"]), nodes=4), system(), **settings)


def sarif_of(found: Advice) -> dict:
    return json.loads(advice_to_sarif(found, version="1.2.3", pages={rule.id: page_text(rule) for rule in rules()}))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "profile.yaml"
    profile(files("a", "b")).save(path)
    (tmp_path / "system.yaml").write_text("")
    system().save(tmp_path / "system.yaml")
    return path


@pytest.fixture
def vani(capfd):
    """Run `vani` in this process."""

    def run(*arguments: object, status: int = 0):
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        done = capfd.readouterr()
        assert leaving.value.code == status, done.err
        return done

    return run


def read_yaml(text: str) -> dict:
    return yaml.load(text, yaml.CSafeLoader)


# --- SARIF ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["d"], NAMES, []])
def test_sarif_is_valid_against_its_schema(names):
    jsonschema = pytest.importorskip("jsonschema")
    found = sarif_of(advise_document(profile(files(*names)), system()))
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(found)


def test_sarif_has_a_result_for_every_verdict_and_a_rule_for_every_result():
    found = advice("a", "b")
    run = sarif_of(found)["runs"][0]
    kinds = [result["kind"] for result in run["results"]]
    assert kinds.count("fail") == len(found.recommendations)
    assert kinds.count("notApplicable") == len(found.no_recommendation)
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert set(ids) == {rule.id for rule in rules()}


def test_a_path_in_sarif_is_a_uri():
    found = advise_document(profile(files("a b%", "ü:x")), system(), select=["LUS002"])
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in sarif_of(found)["runs"][0]["results"]]
    assert places[0].startswith("file:///lustre/a%20b%25")
    assert places[1].startswith("file:///lustre/%C3%BC%3Ax")


# --- Markdown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_path_in_markdown_is_not_markup(name):
    text = to_markdown(advice(name))
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.DOTALL)
    assert "<b>" not in outside.replace("\\<b\\>", "")
    assert "[x](y)" not in outside.replace("\\[x\\](y)", "")


def test_markdown_has_a_row_and_a_section_for_each_recommendation():
    found = advice("a", "b")
    text = to_markdown(found)
    for number, one in enumerate(found.recommendations, 1):
        assert f"\n| {number} | {one.rule} " in text
        assert f"\n## {number}. {one.name} ({one.rule})\n" in text
    for one in found.no_recommendation:
        assert f"\n- {one.rule}: " in text


def test_block_of_code_ends_at_its_closing_fence():
    found = advice("d")
    one = found.recommendations[-1].model_copy(update={"apply": ["lfs setstripe -c 4 '/a```'"]})
    text = to_markdown(found.model_copy(update={"recommendations": [one]}))
    assert "````sh\nlfs setstripe -c 4 '/a```'\n````\n" in text


# --- order and formats ----------------------------------------------------------------------------


def test_recommendations_are_sorted_by_seconds_saved():
    points = [{"stripe_count": 1, "bandwidth": 4e8}, {"stripe_count": 8, "bandwidth": 2e9}]
    measured = system(stripe_curves=[{"calls": "independent", "nodes": 4, "points": points}])
    found = advise_document(profile(files("a", "b", "c"), nodes=4), measured, select=["LUS002"])
    won = [one.expected.before - one.expected.after for one in found.recommendations]
    assert len(won) == 3
    assert won == sorted(won, reverse=True)


@pytest.mark.parametrize("kind", ["text", "yaml", "json", "markdown", "sarif"])
def test_every_format_is_written_to_stdout_and_to_a_file(vani, saved, tmp_path, kind):
    machine = tmp_path / "system.yaml"
    first = vani("advise", saved, "--system", machine, "--format", kind)
    vani("advise", saved, "--system", machine, "--format", kind, "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == first.out
    assert first.err == ""
    reads = {"yaml": read_yaml, "json": json.loads, "sarif": json.loads}.get(kind, str)
    assert reads(first.out)


def test_yaml_and_json_are_the_same_advice(vani, saved):
    as_yaml = read_yaml(vani("advise", saved).out)
    as_json = json.loads(vani("advise", saved, "--format", "json").out)
    assert as_yaml.keys() == as_json.keys()
    assert [one["rule"] for one in as_yaml["recommendations"]] == [one["rule"] for one in as_json["recommendations"]]


def test_script_is_written_next_to_the_advice(vani, saved, tmp_path):
    done = vani("advise", saved, "--system", tmp_path / "system.yaml", "--script", tmp_path / "apply.sh")
    assert done.out.startswith("schema: vani.advice/3")
    assert (tmp_path / "apply.sh").read_text().startswith("#!/bin/sh\n")


def test_one_file_for_advice_and_script_is_refused(vani, saved, tmp_path):
    done = vani("advise", saved, "-o", tmp_path / "x", "--script", tmp_path / "x", status=2)
    assert len(done.err.splitlines()) == 1


# --- vani.toml ------------------------------------------------------------------------------------


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "vani.toml"
    path.write_text(text)
    return path


def test_thresholds_of_a_file_apply_to_the_rule(vani, saved, tmp_path):
    config = write(tmp_path, '[check]\nx = 1\n[advise.thresholds.LUS002]\nmin_bytes = "21G"\n')
    machine = tmp_path / "system.yaml"
    before = vani("advise", saved, "--system", machine, "--select", "LUS002", "--format", "json")
    after = vani("advise", saved, "--system", machine, "--select", "LUS002", "--format", "json", "--config", config)
    assert json.loads(before.out)["recommendations"]
    assert not json.loads(after.out)["recommendations"]


def test_select_and_ignore_of_a_file(vani, saved, tmp_path):
    config = write(tmp_path, '[advise]\nselect = ["LUS", "MAT"]\nignore = "MAT001"\n')
    found = json.loads(vani("advise", saved, "--format", "json", "--config", config).out)
    asked = {one["rule"] for key in ("recommendations", "no_recommendation") for one in found[key]}
    assert asked == {rule.id for rule in rules() if rule.id.startswith("LUS")}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[advise.thresholds.LUS02]\nmin_bytes = 1", "thresholds are given for 'LUS02', which is not a rule; did you mean"),
        ("[advise.thresholds.LUS002]\nknee = 1", "rule LUS002 has no threshold 'knee'"),
        ("[advise.thresholds.LUS002]\nmin_bytes = 'x'", "min_bytes of rule LUS002 is 'x'"),
        ("[advise.thresholds.LUS002]\nmin_bytes = true", "is True"),
        ("[advise.thresholds.LUS002]\nmin_bytes = -1", "is -1"),
        ("[advise.thresholds.LUS002]\nmin_bytes = nan", "is nan"),
        ("[advise.thresholds.LUS002]\nmin_bytes = [1]", "is [1]"),
        ("[advise]\nthreshold = 1", "unknown key 'threshold' in [advise]; did you mean 'thresholds'?"),
        ("[advise]\nthresholds = 1", "contains no tables of rules"),
        ("advise = 1", "`advise` is not a table"),
        ("[advise]\nselect = 3", "select in [advise] is not a list of rules"),
        ("[advise", "not TOML"),
    ],
)
def test_invalid_setting_is_reported_in_one_line(vani, saved, tmp_path, text, sentence):
    # Even if the rule is not selected.
    done = vani("advise", saved, "--select", "MAT001", "--config", write(tmp_path, text), status=2)
    assert len(done.err.splitlines()) == 1
    assert sentence in done.err
    assert done.out == ""


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0", b"a" * ((1 << 20) + 1)])
def test_binary_file_is_refused(tmp_path, content):
    path = tmp_path / "vani.toml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_settings(path)


def test_missing_file_is_refused(tmp_path):
    for path in (tmp_path / "no", tmp_path):
        with pytest.raises(InputError):
            read_settings(path)


# --- rules and explain ----------------------------------------------------------------------------


def test_the_rules_are_listed_with_their_family():
    lines = CliRunner().invoke(commands, ["explain"]).output.splitlines()
    assert [line.split()[0] for line in lines] == [*(rule.id for rule in rules()), *["pattern"] * len(patterns())]
    for line, rule in zip(lines, rules(), strict=False):
        assert line.split()[1:3] == [rule.name, rule.family]
        assert line.endswith(rule.page().finding)
    for line, pattern in zip(lines[-len(patterns()) :], patterns(), strict=True):
        assert line.split()[1] == pattern.name
        assert line.endswith(pattern.page().finding)


def test_the_rules_as_json():
    listed = json.loads(CliRunner().invoke(commands, ["explain", "--format", "json"]).output)
    assert [one["id"] for one in listed if one["id"] != "pattern"] == [rule.id for rule in rules()]
    assert set(listed[0]) == {"id", "name", "family", "finding", "thresholds"}


def test_documented_command_regenerates_pages(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "docs/generators/rules.py", str(tmp_path)], check=True, cwd=ROOT, env=environment)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == pages()
