"""Each guide in docs/contributing, followed word for word in a copy of the sources, gives the promised result.

`test_docs` runs its commands in a separate copy; here all guides are followed in the same one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guides import FOLDERS, GUIDES, ROOT, follow, scratch_copy, steps

# Cases of rules are tests without Python.
IS_TEST = re.compile(r"tests/\w+/(test_\w+\.py|cases/\w+\.yaml)")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources in which all guides were followed."""
    place = scratch_copy(tmp_path_factory.mktemp("sources"))
    for page in GUIDES:
        follow(page, place)
        for command in re.findall(r"^\$ (mkdir vani/.*)$", page.read_text(), re.MULTILINE):
            subprocess.run(["/bin/sh", "-c", command], cwd=place, check=True)
    return place


def run(sources: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), str(sources / "tests")])}
    # A test run by one of several workers is not itself a worker.
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=sources, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_regular_addition_has_a_guide():
    kinds = {"reader", "analyzer", "rule", "pattern", "output-format", "command", "plot", "machine", "policy-attribute"}
    assert {page.stem for page in GUIDES} == kinds
    assert all(steps(page) for page in GUIDES)


def test_contributing_leads_to_every_guide():
    linked = re.findall(r"\]\(docs/contributing/([\w-]+)\.md\)", (ROOT / "CONTRIBUTING.md").read_text())
    assert sorted(linked) == sorted(page.stem for page in GUIDES)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_guide_changes_at_most_two_modules_besides_its_own(page):
    changed = {step.path for step in steps(page) if not step.is_new and step.path.endswith(".py")}
    # One change for each of the two kinds of attributes in the guide on policies.
    assert len(changed) <= (3 if page.stem == "policy-attribute" else 2)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_writes_a_test(page):
    assert [step.path for step in steps(page) if step.is_new and IS_TEST.fullmatch(step.path)]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_each_path_in_the_prose_of_a_guide_exists(page, sources):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    paths = re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?)`", prose)
    assert paths
    assert [path for path in paths if not (sources / path).exists()] == []
    named = re.findall(r"`(\w+\.py)`", prose)
    assert [name for name in named if not any(place.rglob(name) for place in sources.iterdir())] == []


@pytest.mark.slow
def test_the_tests_of_the_guides_pass_and_those_that_hold_of_all_of_a_kind(sources):
    written = [step.path for page in GUIDES for step in steps(page) if step.is_new and "test_" in step.path]
    files = (
        "render/test_plots.py",
        "render/test_formats.py",
        "systems",
        "gate/test_check_page.py",
        "advisors/test_cases.py",
        "test_docs.py",
    )
    of_all = [f"tests/{name}" for name in (*files, "test_package.py")]
    names = [
        "page_of_plots",
        "page_of_commands",
        "test_check_page",
        "test_formats",
        "folders",
        "example-cluster",
        "itself_by_way",
        "POS099",
    ]
    names += [Path(path).stem for path in written]
    quietly = ("-q", "-n", "0", "-p", "no:cacheprovider")
    said = run(sources, "-m", "pytest", *quietly, "-k", " or ".join(names), *of_all, *written)
    assert int(re.search(r"(\d+) passed", said)[1]) >= 40


@pytest.mark.slow
def test_code_in_the_guides_passes_the_linter_and_import_contracts(sources):
    pytest.importorskip("importlinter")
    run(sources, "-m", "ruff", "check", "--no-cache", ".")
    new = [
        step.path for page in GUIDES for step in steps(page) if step.is_new and step.language == "python"
    ]
    run(sources, "-m", "ruff", "format", "--no-cache", "--check", *new)
    run(sources, "-c", "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])")


@pytest.mark.slow
def test_a_fault_of_code_that_a_contributor_added_names_its_file_and_line(sources, tmp_path):
    # The guide's class without the lines above it.
    block = re.search(r"^class LongestCall\(SumsMeasure\):\n(.*?)^```$", (ROOT / "docs/contributing/analyzer.md").read_text(), re.M | re.S)[0]
    block = block.removesuffix("```")
    pasted = sources / "analyzers" / "measures" / "pasted_from_the_guide.py"
    pasted.write_text(block)
    subprocess.run(["git", "init", "-q", sources], check=True)
    trace = sources / "tests" / "data" / "traces" / "v3-posix-mix-nonmpi"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "vani", "profile", trace, "-q"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(sources)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        pasted.unlink()
        shutil.rmtree(sources / ".git")
    line = "vani: NameError: name 'SumsMeasure' is not defined at analyzers/measures/pasted_from_the_guide.py:"
    assert (done.returncode, done.stderr.startswith(line)) == (2, True), done.stderr


def test_a_copy_of_the_sources_is_a_copy(sources):
    """No changed file is a link out of the copy."""
    links = [path for name in FOLDERS for path in (sources / name).rglob("*") if path.is_symlink()]
    assert {link.relative_to(sources).as_posix(): str(link.readlink()) for link in links} == {
        f"vani/{name}": f"../{name}" for name in ("schema", "analyzers", "advisors")
    }
