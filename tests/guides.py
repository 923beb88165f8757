"""Follows a guide of docs/contributing in a copy of the sources.

The line above each block for a file ends in the file's name: "A new file, `vani/cli/notes.py`:". A `diff` block
changes an existing file: the lines after blanks and `-` occur in it once and are replaced by the lines after blanks
and `+`. Any other block is the whole content of a new file.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

__all__ = ["GUIDES", "Step", "follow", "scratch_copy", "steps"]

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
FOLDERS = ("vani", "schema", "analyzers", "advisors", "tests", "benchmarks", "docs", "examples")

_BLOCK = re.compile(
    r"^[^\n]*`([\w./-]+\.(?:py|md|toml|yaml))`:\n\n```(python|yaml|toml|diff)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    """One file that a guide says to write or to change."""

    path: str
    language: str
    text: str

    @property
    def is_new(self) -> bool:
        return self.language != "diff"


def steps(page: Path) -> list[Step]:
    return [Step(*found) for found in _BLOCK.findall(page.read_text())]


def scratch_copy(place: Path) -> Path:
    """Copy the files that a contributor works on; the three links below `vani/` lead to the folders of the copy."""
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path in (*ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile"):
        shutil.copy(path, place)
    return place


def follow(page: Path, place: Path) -> None:
    """Write and change all files of a guide, in order."""
    for step in steps(page):
        path = place / step.path
        if step.is_new:
            assert not path.exists(), f"{page.name} writes {step.path}, which already exists"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        else:
            path.write_text(_changed(path.read_text(), step, page))


def _changed(text: str, step: Step, page: Path) -> str:
    lines = step.text.splitlines(keepends=True)
    assert {line[0] for line in lines} <= set(" +-\n"), (
        f"{page.name}: the change of {step.path} is no difference"
    )
    before, after = ("".join(line[1:] or line for line in lines if line[0] != sign) for sign in "+-")
    # A change may cover a part of its last line.
    before, after = before.rstrip("\n"), after.rstrip("\n")
    found = text.count(before)
    assert found == 1, f"{page.name}: what it changes is in {step.path} {found} times:\n{before}"
    return text.replace(before, after)
