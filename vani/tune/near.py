"""Folders near the nodes that a run uses in place of others, with copies before and after it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vani.schema.tuned import Setting

_PREFIX: Final = "vani-tune-"


@dataclass
class Near:
    """Folders that a setting stages to near storage for one run.

    Parameters
    ----------
    folder
        Output folder of the run.
    note
        File that lists the created folders, so that a later session can remove those of a killed one.
    """

    setting: Setting
    folder: Path
    note: Path
    output: Path = field(init=False)
    """Folder that the program writes to."""
    inputs: dict[str, str] = field(init=False, default_factory=dict)
    """Copy of each input folder."""

    def __post_init__(self) -> None:
        self.output = self.folder

    def begin(self) -> None:
        """Create the folders and copy what the program reads. Raises OSError on failure."""
        for source, near in self.setting.stage_in.items():
            copy = self._new(near)
            shutil.copytree(source, copy, symlinks=True, dirs_exist_ok=True)
            self.inputs[source] = str(copy)
        if self.setting.stage_out is not None:
            self.output = self._new(self.setting.stage_out)

    def words(self, words: Sequence[str]) -> list[str]:
        """The command with input folders replaced by their copies."""
        replaced = list(words)
        for source, copy in self.inputs.items():
            replaced = [word.replace(source, copy) for word in replaced]
        return replaced

    def bring_back(self) -> None:
        """Copy what the program wrote to the run's output folder. Raises OSError on failure."""
        if self.output != self.folder:
            shutil.copytree(self.output, self.folder, symlinks=True, dirs_exist_ok=True)

    def _new(self, near: str) -> Path:
        path = Path(near) / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        with self.note.open("a", encoding="utf-8") as file:
            file.write(f"{path}\n")
            file.flush()
            os.fsync(file.fileno())
        path.mkdir(mode=0o700)
        return path


def remove_noted(note: Path) -> None:
    """Remove the folders listed in the note, and the note itself."""
    if not note.is_file():
        return
    for line in note.read_text(encoding="utf-8").splitlines():
        path = Path(line)
        if path.name.startswith(_PREFIX) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
    note.unlink()
