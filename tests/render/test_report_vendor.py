"""Promises about the libraries in the page: they are what their projects published, with their licences."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import vani

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


def test_no_library_can_end_its_script_element():
    for path in VENDOR.glob("*.js"):
        text = path.read_text().lower()
        assert "</script" not in text
        assert "<!--" not in text
