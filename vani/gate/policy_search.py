"""Where the policy of a project is, and where its saved baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from vani.errors import InputError

__all__ = ["BASELINE", "FILE_NAMES", "find_policy", "is_there", "project_folder"]

FILE_NAMES: Final = ("vani.toml", ".vani.yaml")
BASELINE: Final = Path(".vani/baseline.yaml")


def find_policy(start: Path) -> Path | None:
    """The nearest policy, from the folder `start` upwards.

    The last folder looked at is the top of a repository (it holds `.git`), the home directory or the root.

    Raises
    ------
    InputError
        A folder holds both kinds of files.
    """
    for folder in _upwards(start):
        found = [name for name in FILE_NAMES if is_there(folder / name)]
        if len(found) > 1:
            raise InputError(
                f"holds both {' and '.join(found)}",
                where=folder,
                todo="keep one of them, or name one with --policy",
            )
        if found:
            return Path(os.path.relpath(folder / found[0], start))
    return None


def project_folder(start: Path) -> Path:
    """Without a policy: the nearest folder upwards that has a saved baseline, else `start`."""
    for folder in _upwards(start):
        if is_there(folder / BASELINE):
            return Path(os.path.relpath(folder, start))
    return Path()


def is_there(path: Path) -> bool:
    """Whether there is a file of this name.

    Raises
    ------
    InputError
        There is something else, such as a link to nothing: whoever put it there meant it to be read.
    """
    if path.is_file():
        return True
    if not os.path.lexists(path):
        return False
    what = (
        "is a directory" if path.is_dir() else "is a link to nothing" if path.is_symlink() else "is not a file"
    )
    raise InputError(what, where=path, todo="remove it, or put a file in its place")


def _upwards(start: Path) -> list[Path]:
    start = start.resolve()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    folders = []
    for folder in (start, *start.parents):
        folders.append(folder)
        if (folder / ".git").exists() or folder == home:
            break
    return folders
