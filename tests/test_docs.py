"""README and docs: every command runs and prints what is shown, and every reference is current.

`UPDATE_DOCS=1 python -m pytest tests/test_docs.py` writes the present outputs into the pages (like `make docs`):
read the diff. Output is as on a terminal of 80 columns without colours.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from distribution import install
from generators.profile import reference
from guides import GUIDES, follow, scratch_copy
from terminal import on_terminal

from vani.calls import CALLS, Flag
from vani.cli.main import commands
from vani.store.read import Manifest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    # Generated from the code, and tested there.
    if path.parent.name != "rules"
)
UPDATE = bool(os.environ.get("UPDATE_DOCS"))


def blocks(page: Path, language: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for named, text in fences if named == language]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the pages' commands work as in the repository, and leave nothing there."""
    place = tmp_path / "desk"
    programs = tmp_path / "bin"
    place.mkdir()
    programs.mkdir()
    for name in ("vani", "tests", "examples"):
        (place / name).symlink_to(ROOT / name)
    for name, module in (("vani", "-m vani"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    for name, value in (("COLUMNS", "80"), ("TERM", "dumb"), ("LC_ALL", "C.UTF-8")):
        monkeypatch.setenv(name, value)
    return place


@pytest.fixture
def place_of(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Where a page's commands run: on the desk or, for an example's page, in a copy of the example.

    A guide's commands run in a copy of the sources in which the guide was followed.
    """

    def place(page: Path) -> Path:
        if page in GUIDES:
            sources = scratch_copy(tmp_path / "sources")
            follow(page, sources)
            monkeypatch.setenv("PYTHONPATH", str(sources))
            return sources
        example = page.parent
        if example.parent != ROOT / "examples":
            return desk
        copy = tmp_path / "elsewhere" / "examples"
        shutil.copytree(example.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if (example / "pyproject.toml").is_file():
            site = tmp_path / "site"
            install(copy / example.name, site, monkeypatch)
            monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{site}")
        return copy / example.name

    return place


def shown_by(command: str, place: Path) -> tuple[int, str]:
    """Exit status of a shell command, and its terminal output without trailing blanks."""
    status, shown = on_terminal(["/bin/sh", "-c", command], place)
    return status, "\n".join(line.rstrip() for line in shown.splitlines())


def commands_of(block: str) -> list[tuple[str, str]]:
    """(command, output) pairs of a console block."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


_FIRST = {"README.md", "docs/darshan.md", "examples/01-first-profile/README.md"}
"""Pages that newcomers read first. The others take seconds each; `make nightly` and `make docs` run them."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=() if name_of(page) in _FIRST else pytest.mark.slow)
        for page in PAGES
        if blocks(page, "console") or blocks(page, "pycon")
    ],
)
def test_commands_and_sessions_print_the_shown_output(page, place_of, monkeypatch):
    """The commands of a page in order, then its sessions, which use the files the commands wrote."""
    text = page.read_text()
    place = place_of(page)
    for block in blocks(page, "console"):
        now = ""
        for command, shown in commands_of(block):
            if "vani trace" in command and shutil.which("strace") is None:
                pytest.skip("strace is not installed")
            status, printed = shown_by(command, place)
            wanted = re.search(r"# exit status (\d)", command)
            assert status == (int(wanted[1]) if wanted else 0), f"{command}\n{printed}"
            now += f"$ {command}\n" + (printed.strip("\n") + "\n" if shown else "")
        if UPDATE:
            text = text.replace(f"```console\n{block}```", f"```console\n{now}```")
        else:
            assert now == block
    if UPDATE:
        page.write_text(text)
    monkeypatch.chdir(place)
    session = doctest.DocTestParser().get_doctest("".join(blocks(page, "pycon")), {}, page.name, str(page), 0)
    said: list[str] = []
    assert doctest.DocTestRunner().run(session, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_run(page):
    """Blocks without a language are pictures and CI commands; a `vani` command there would not be tested."""
    for block in blocks(page, ""):
        for line in block.splitlines():
            assert not line.startswith(("vani ", "$ ")), line
            if line.startswith("make "):
                targets = ["#", *re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)]
                assert line.split()[1] in targets
            if line.startswith("bash "):
                assert (ROOT / line.split()[1]).is_file()
    named = set(re.findall(r"^```(\w+)$", page.read_text(), re.MULTILINE))
    # Commands that need a cluster cannot run here (bash), and output that depends on the machine cannot be
    # compared (text).
    assert named <= {"bash", "console", "diff", "pycon", "python", "text", "toml", "yaml"}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "bash")], ids=name_of)
def test_commands_for_a_cluster_have_their_documented_options(page):
    for block in blocks(page, "bash"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["vani"]:
                continue
            command = commands.get_command(click.Context(commands), words[1])
            assert command is not None, line
            command.make_context(words[1], words[2:], resilient_parsing=False)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        # A test follows no external links.
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_reference_of_the_profile_is_current():
    page = ROOT / "docs" / "profile.md"
    if UPDATE:
        page.write_text(reference())
    assert page.read_text() == reference(), "run `make docs`"


def test_every_attribute_of_the_profile_has_a_meaning():
    rows = re.findall(r"^\| `.*$", reference(), re.MULTILINE)
    assert len(rows) > 150
    assert [row for row in rows if not row.split("|")[3].strip()] == []


def all_commands(
    prefix: str, group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{prefix}{name}", command
        if isinstance(command, click.Group):
            yield from all_commands(f"{prefix}{name} ", command, context)


def test_every_command_and_option_is_on_the_page_of_commands(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    page = importlib.import_module("command_help").help_of_all()
    context = commands.make_context("vani", ["--help"], resilient_parsing=True)
    for name, command in all_commands("", commands, context):
        assert f"## vani {name}\n\n```text\nUsage: vani {name} " in page
        assert command.help, f"{name} has no help"
        for option in command.params:
            if getattr(option, "hidden", False):
                continue
            if option.param_type_name == "option":
                assert option.help, f"{name} {option.opts} has no help"
                assert option.opts[-1] in page
            else:
                assert option.make_metavar(context).strip("[]. ").split()[0] in page


def table(page: str, heading: str) -> list[list[str]]:
    """Rows of the table under a heading row, without code marks."""
    text = (ROOT / "docs" / page).read_text()
    found = text.index(heading)
    rows = text[found:].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


def test_the_page_of_the_store_names_the_columns_of_calls():
    rows = table("store.md", "| column | type | meaning |")
    assert [(row[0], row[1]) for row in rows] == [(field.name, str(field.type)) for field in CALLS]


def test_the_page_of_the_store_names_the_flags():
    rows = table("store.md", "| flag | bit | meaning |")
    assert [(row[0], 1 << int(row[1])) for row in rows] == [(flag.name, flag.value) for flag in Flag]


def test_the_page_of_the_store_names_the_keys_of_the_manifest():
    named = {name.strip("` ") for row in table("store.md", "| key | meaning |") for name in row[0].split(",")}
    assert named == set(Manifest.__dataclass_fields__)


def test_install_advice_never_names_another_projects_package():
    texts = [path.read_text() for path in PAGES]
    assert [t for t in texts if re.search(r"pip install '?vani(?!-io)", t)] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "vani-io"
