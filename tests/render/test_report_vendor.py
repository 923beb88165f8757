"""The libraries in the page are exactly those published by their projects, with their licences."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import vani

ROOT = Path(__file__).resolve().parents[2]
VENDOR = Path(vani.__file__).parent / "render" / "report" / "vendor"
ROWS = re.findall(r"^\| (\S+\.js) \| (\S+) \| (\S+) \| ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)


def test_the_readme_lists_every_library():
    assert sorted(row[0] for row in ROWS) == sorted(path.name for path in VENDOR.glob("*.js"))
    assert len(ROWS) == 3


@pytest.mark.parametrize(("name", "package", "version", "digest"), ROWS)
def test_a_library_has_the_digest_of_the_readme(name, package, version, digest):
    content = (VENDOR / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest
    assert f'"{version}"'.encode() in content
    assert (VENDOR / f"LICENSE.{package}").read_text().startswith("Copyright")


def test_distribution_names_their_licences_and_contains_their_texts():
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert core.license_expression == "MIT AND BSD-3-Clause AND ISC"
    texts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "LICENSE", *VENDOR.glob("LICENSE.*"))}
    assert set(core.license_files) == texts
    bundled = (VENDOR / "LICENSE.bundled").read_text()
    assert "ISC License" in bundled and "Permission is hereby granted" in bundled


def test_no_library_can_end_its_script_element():
    for path in VENDOR.glob("*.js"):
        text = path.read_text().lower()
        assert "</script" not in text
        assert "<!--" not in text
