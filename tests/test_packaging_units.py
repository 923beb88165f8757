"""systemd units, users and folders that a centre installs."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from vani.cli.main import commands

ROOT = Path(__file__).resolve().parent.parent
UNITS = ROOT / "packaging" / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
PROGRAM = "/opt/vani/bin/vani"
PAGE = (ROOT / "docs" / "centre.md").read_text()


def unit(path):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(path)
    return parser


def settings():
    lines = (UNITS / "vani.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def started(path):
    """Each command of a unit, with variables filled in from the common file."""
    for line in path.read_text().splitlines():
        if line.startswith("ExecStart="):
            text = re.sub(r"\$\{(\w+)\}", lambda match: settings()[match[1]], line.removeprefix("ExecStart="))
            yield shlex.split(text)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_units_start_existing_vani_commands_with_existing_options(path):
    begun = list(started(path))
    assert begun
    for program, *begun_words in begun:
        assert program == PROGRAM
        words = list(begun_words)
        command, context = commands, click.Context(commands, info_name="vani")
        while isinstance(command, click.Group):
            name, command, words = command.resolve_command(context, words)
            assert command is not None
            context = click.Context(command, info_name=name, parent=context)
        command.make_parser(context).parse_args(args=words)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_unit_runs_as_root_only_with_a_stated_reason(path):
    service = unit(path)["Service"]
    if "User" in service:
        assert service["User"] == "vani"
    else:
        assert "Root:" in path.read_text().splitlines()[0]
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_finds_nothing_wrong(tmp_path):
    for path in [*SERVICES, *UNITS.glob("*.timer")]:
        # The program exists only at a centre.
        (tmp_path / path.name).write_text(path.read_text().replace(PROGRAM, "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    own = [line for line in done.stderr.splitlines() if "vani-" in line]
    assert own == []


def test_folders_belong_to_their_writers():
    lines = (UNITS / "vani.tmpfiles.conf").read_text().splitlines()
    owners = {words[1]: (words[2], words[3]) for line in lines if (words := line.split()) and line[0] in "df"}
    assert owners == {
        "/var/lib/vani": ("0755", "vani"),
    }
    assert "u vani " in (UNITS / "vani.sysusers.conf").read_text()


def test_the_page_for_centres_names_every_file():
    for path in UNITS.iterdir():
        assert f"`{path.name}`" in PAGE
