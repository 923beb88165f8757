"""Versions of Python: the sources suit all supported ones, and CI tests the oldest and the newest."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("vani", "schema", "analyzers", "advisors", "tests", "benchmarks", "examples", "docs")
SUPPORTED = ["3.11", "3.12", "3.13", "3.14"]


def sources() -> list[Path]:
    """Every Python file; rglob does not follow the links below `vani/`, so each counts once."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def fault(path: Path) -> str | None:
    """The compiler's error or warning about a file, or that of later compilers."""
    source = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            # This file's own __future__ imports must not apply to others.
            compile(source, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, Warning) as error:
            return f"{path.relative_to(ROOT)}: {type(error).__name__}: {error}"
    # Python 3.13 and later cannot compile a docstring with a lone surrogate, while earlier ones can.
    if re.search(rb"\\ud[89a-f]", source, re.IGNORECASE):
        texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
        for node in texts:
            if re.search("[\ud800-\udfff]", str(getattr(node.value, "value", ""))):
                return f"{path.relative_to(ROOT)}:{node.lineno}: half of a surrogate pair in a docstring"
    return None


@pytest.mark.slow
def test_every_source_compiles_without_a_warning_on_all_versions():
    assert len(sources()) > 300
    assert [message for path in sources() if (message := fault(path))] == []


def test_metadata_name_the_supported_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={SUPPORTED[0]}"
    language = "Programming Language :: Python :: 3."
    assert [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(language)] == SUPPORTED
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in SUPPORTED


def test_no_script_of_a_test_names_its_interpreter_in_the_first_line():
    """A `#!` line cannot contain a path with a blank."""
    assert [path.name for path in (ROOT / "tests").rglob("*.py") if re.search(r"#!\{", path.read_text())] == []


class TestNewestPython:
    """`.ci/newest-python` with a PATH that contains only stand-ins."""

    @pytest.fixture
    def programs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = tmp_path / "some programs"
        folder.mkdir()
        for name in ("bash", "ls", "tail", "timeout", "uname"):
            (folder / name).symlink_to(shutil.which(name))
        monkeypatch.setenv("PATH", str(folder))
        return folder

    def stand_in(self, place: Path, script: str) -> Path:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)
        return place

    def newest(self, programs: Path, than: int) -> str:
        ours = self.stand_in(programs.parent / "ours", f"echo {than}")
        script = ROOT / ".ci" / "newest-python"
        done = subprocess.run(
            ["bash", script, ours, programs.parent], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.removesuffix("\n")

    def test_program_of_the_right_name_that_does_not_work_is_skipped(self, programs):
        self.stand_in(programs / "python3.14", "echo 'pyenv: python3.14: command not found' >&2; exit 127")
        self.stand_in(programs / "python3.13", "echo 12")
        wanted = self.stand_in(programs / "python3.12", "echo 12")
        assert self.newest(programs, 11) == str(wanted)

    def test_newest_python_is_found_through_pyenv(self, programs):
        self.stand_in(programs / "pyenv", f"echo '{programs.parent}/py env'")
        self.stand_in(programs / "python3.13", "exit 127")
        self.stand_in(programs / "python3.12", "echo 12")
        wanted = self.stand_in(programs.parent / "py env" / "versions" / "3.13.7" / "bin" / "python3.13", "echo 13")
        assert self.newest(programs, 11) == str(wanted)

    def test_failed_download_keeps_the_local_python(self, programs):
        self.stand_in(programs / "mvn", "echo no network; exit 1")
        wanted = self.stand_in(programs / "python3.13", "echo 13")
        assert self.newest(programs, 12) == str(wanted)

    @pytest.mark.parametrize("than", [13, 14])
    def test_no_newer_python_gives_no_output(self, programs, than):
        self.stand_in(programs / "python3.13", "echo 13")
        assert self.newest(programs, than) == ""


def test_tests_that_ci_repeats_for_other_versions_exist():
    script = (ROOT / ".ci" / "tests-of-versions").read_text()
    tests = re.search(r"^tests=\((.*)\)$", script, re.MULTILINE)[1].split()
    assert {"tests/readers", "tests/schema", "tests/golden", "tests/test_library.py"} <= set(tests)
    assert [path for path in tests if not (ROOT / path).exists()] == []
    for name in ("newest", "oldest"):
        assert "bash .ci/tests-of-versions" in (ROOT / ".ci" / name).read_text()


def test_ci_ends_with_the_tests_on_its_own_python():
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text().splitlines()
        if not line.startswith(("#", "make --silent"))
    ]
    assert re.findall(r"make \w+|bash \.ci/[\w-]+", "\n".join(commands)) == [
        "make demo",
        "bash .ci/oldest",
        "make site",
        "bash .ci/newest",
        "bash .ci/package-test",
        "make test",
    ]
    assert commands[-1] == "make test"


def test_ci_tests_the_oldest_allowed_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    without_tests = {"collect", "database", "docs", "frames", "lint", "peers", "test"}
    listed = [one for name, extra in extras.items() if name not in without_tests for one in extra]
    asked = dict(one.replace("[binary]", "").split(">=") for one in [*project["dependencies"], *listed])
    lines = (ROOT / ".ci" / "oldest-versions.txt").read_text().splitlines()
    assert dict(line.split("==") for line in lines if not line.startswith("#")) == asked
