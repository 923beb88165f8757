"""Files that a centre installs: module files, recipes, completion, manual page, and the epilog of jobs."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

import vani

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
EPILOG = PACKAGING / "epilog" / "vani-epilog"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = {re.match(r"[\w-]+", one)[0]: re.search(r">=([\d.]+)", one)[1] for one in PROJECT["dependencies"]}


def test_the_recipe_of_spack_has_the_dependencies_of_the_project():
    text = (PACKAGING / "spack" / "package.py").read_text()
    ast.parse(text)
    found = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):", type=\("build", "run"\)\)', text))
    assert found == NEEDED
    assert f'version("{vani.__version__}")' in text
    # Since 1.0 `spack.package` has no build systems; its style check allows 99 characters per line.
    assert "from spack_repo.builtin.build_systems.python import PythonPackage" in text.splitlines()
    assert max(map(len, text.splitlines()[1:])) <= 99


def test_the_recipe_of_conda_has_the_dependencies_of_the_project():
    recipe = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    names = {"dask-core": "dask", "python-isal": "isal"}
    python, *others = recipe["requirements"]["run"]
    run = dict(re.match(r"([\w-]+) >=([\d.]+)", one).groups() for one in others)
    assert python == "python >=${{ python_min }}"
    assert recipe["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    assert {names.get(name, name): version for name, version in run.items()} == NEEDED
    assert recipe["context"]["version"] == vani.__version__
    assert recipe["build"]["python"]["entry_points"] == [f"vani = {PROJECT['scripts']['vani']}"]


def test_the_recipe_of_conda_is_valid_by_the_schema_of_its_format():
    schema = json.loads((ROOT / "tests" / "data" / "conda-recipe-schema.json").read_text())
    valid = jsonschema.Draft202012Validator(schema).is_valid
    recipe = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    assert valid(recipe)
    assert not valid(recipe | {"build": recipe["build"] | {"noarch": "pyton"}})


def test_both_recipes_have_all_build_dependencies():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    recipe = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    spack = (PACKAGING / "spack" / "package.py").read_text()
    for needed in build:
        name, version = needed.split(">=")
        assert f"{name} >={version}" in recipe["requirements"]["host"]
        assert f'depends_on("py-{name}@{version}:", type="build")' in spack


def test_container_copies_its_packages_and_names_the_command():
    lines = (PACKAGING / "container" / "Containerfile").read_text().splitlines()
    assert 'ENTRYPOINT ["vani"]' in lines
    assert sum(line.startswith("FROM ") for line in lines) == 2


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="no tclsh")
def test_the_module_file_sets_path_and_site(tmp_path):
    told = (
        'proc module-whatis args {}\nproc prepend-path {name value} {puts "$name $value"}\n'
        'proc setenv {name value} {puts "$name $value"}\n'
    )
    (tmp_path / "try.tcl").write_text(told + f"source {{{PACKAGING / 'modules' / 'vani.tcl'}}}\n")
    done = subprocess.run(["tclsh", tmp_path / "try.tcl"], capture_output=True, text=True, check=True)
    root = f"/apps/vani/{vani.__version__}"
    assert done.stdout.splitlines() == [
        f"PATH {root}/bin",
        f"MANPATH {root}/share/man",
        f"VANI_SITE {root}/etc/site.toml",
    ]


def test_both_module_files_say_the_same():
    lua = (PACKAGING / "modules" / "vani.lua").read_text()
    tcl = (PACKAGING / "modules" / "vani.tcl").read_text()
    for text in (lua, tcl):
        assert f"/apps/vani/{vani.__version__}" in text
    names = re.findall(r'(?:prepend_path|setenv)\("(\w+)"', lua)
    assert names == re.findall(r"^(?:prepend-path|setenv) (\w+)", tcl, re.MULTILINE)
    if shutil.which("luac"):
        subprocess.run(["luac", "-p", PACKAGING / "modules" / "vani.lua"], check=True)


# --- completion --------------------------------------------------------------------------------------


def completed(words: str, at: int) -> list[str]:
    environment = os.environ | {"_VANI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [sys.executable, "-m", "vani"], capture_output=True, text=True, env=environment, check=False
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed():
    assert completed("vani expl", 1) == ["explain"]
    assert completed("vani history l", 2) == ["letter", "list"]
    assert "--sort" in completed("vani diff --s", 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_each_shell_is_valid_for_it(shell):
    done = subprocess.run(
        [sys.executable, "-m", "vani", "completion", shell], capture_output=True, text=True, check=True
    )
    assert "_VANI_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


# --- the epilog --------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path):
    """Run the epilog in a job's folder with a stand-in for `vani`; return exit status and vani.log's text."""
    folder = tmp_path / "a job"
    folder.mkdir()
    stand_in = tmp_path / "vani"

    def run(script: str = "", **environment: str) -> tuple[int, str]:
        stand_in.write_text(f"#!/bin/sh\n{script}\n")
        stand_in.chmod(0o755)
        plain = {
            "PATH": os.environ["PATH"],
            "SLURM_JOB_ID": "17",
            "SLURM_SUBMIT_DIR": str(folder),
            "VANI_EPILOG_COMMAND": str(stand_in),
            "VANI_EPILOG_ALLOW_ROOT": "1",
        }
        done = subprocess.run(
            ["sh", EPILOG], env=plain | environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.stdout, done.stderr) == ("", "")
        log = folder / "vani.log"
        return done.returncode, log.read_text() if log.exists() else ""

    run.folder = folder
    return run


def test_trace_is_profiled_and_reported_in_one_line(job):
    (job.folder / "recorder-1").mkdir()
    status, log = job('echo "app: 8 processes" >&2; echo "I/O takes 17 % of the run." >&2; touch "$4"')
    assert status == 0
    assert log == f"job 17: I/O takes 17 % of the run. Next: vani advise '{job.folder}/profile-17.yaml'\n"
    assert (job.folder / "profile-17.yaml").exists()


def test_newest_trace_is_used(job):
    for name, age in (("recorder-old", 1000), ("recorder-new", 2000), ("recorder-middle", 1500)):
        (job.folder / name).mkdir()
        os.utime(job.folder / name, (age, age))
    assert "recorder-new" in job('echo "$2" >&2; echo "$2" >&2')[1]


@pytest.mark.parametrize(
    ("script", "environment", "told"),
    [
        ("echo 'vani: x: is damaged' >&2; exit 2", {}, "job 17: vani: x: is damaged\n"),
        ("sleep 30", {"VANI_EPILOG_SECONDS": "1"}, "was not profiled within 1 s"),
        ("kill -9 $$", {}, "job 17: vani ended with status 137\n"),
        ("echo one >&2; echo two >&2", {"SLURM_JOB_ID": "../../x; rm -rf ."}, "job .._.._x__rm_-rf_.: two"),
        ("echo one >&2; echo two >&2", {"VANI_EPILOG_SECONDS": "1; rm -rf ."}, "job 17: two"),
    ],
)
def test_job_never_fails_because_of_the_hook(job, script, environment, told):
    (job.folder / "recorder-1").mkdir()
    status, log = job(script, **environment)
    assert status == 0
    assert told in log
    assert len(log.splitlines()) == 1


@pytest.mark.parametrize(
    "environment",
    [
        {"SLURM_PROCID": "1"},
        {"VANI_EPILOG_COMMAND": "/nowhere/vani"},
        {"VANI_EPILOG_TRACE": "/nowhere/trace"},
        {"SLURM_SUBMIT_DIR": "/nowhere"},
    ],
)
def test_no_action_is_taken_if_none_is_needed(job, environment):
    (job.folder / "recorder-1").mkdir()
    assert job("echo one; echo two", **environment) == (0, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_root_profiles_no_trace_of_a_user(job):
    (job.folder / "recorder-1").mkdir()
    assert job("echo one; echo two", VANI_EPILOG_ALLOW_ROOT="") == (0, "")


def test_line_is_mailed_if_an_address_is_given(job, tmp_path):
    (job.folder / "recorder-1").mkdir()
    mail = tmp_path / "bin" / "mail"
    mail.parent.mkdir()
    mail.write_text(f'#!/bin/sh\n{{ printf "%s|" "$@"; cat; }} > "{tmp_path}/mailed"\n')
    mail.chmod(0o755)
    job("echo one >&2; echo two >&2", VANI_EPILOG_MAIL="me@x", PATH=f"{mail.parent}:{os.environ['PATH']}")
    assert (tmp_path / "mailed").read_text().startswith("-s|I/O of job 17|--|me@x|job 17: two")


@pytest.mark.slow
def test_the_epilog_profiles_a_real_trace(job):
    shutil.copytree(ROOT / "vani" / "demo" / "ior-shared-file-8r", job.folder / "recorder-ior")
    status, log = job(
        f'exec "{sys.executable}" -m vani "$@"', VANI_CACHE=os.environ["VANI_CACHE"], PYTHONPATH=str(ROOT)
    )
    assert status == 0
    assert re.match(r"job 17: I/O takes 1[67] % of the run.* Next: vani advise", log)
    assert (job.folder / "profile-17.yaml").read_text().startswith("schema: vani.profile/4")


def test_the_epilog_is_clean_shell():
    program = shutil.which(
        "shellcheck", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if program is None:
        pytest.skip("no shellcheck")
    subprocess.run([program, EPILOG], check=True)


# --- the page of a package index ---------------------------------------------------------------------


def test_readme_links_work_on_a_package_index():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    page = (ROOT / "README.md").read_text()
    relative = r"\]\((?!https?://)[^)\s]*\)"
    assert re.search(relative, page)
    for one in settings["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert not re.search(relative, page)
    assert "](https://github.com/uiuc-hpc/Recorder)" in page
