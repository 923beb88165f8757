"""Profiles as trees of plain values, which paths are looked up in."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, refuse_named_pipe
from vani.schema.document import MAX_BYTES
from vani.schema.profile import Profile
from vani.schema.saved_profile import Column, SavedProfile

__all__ = ["Figures", "Tree", "path_text", "read_bytes", "read_figures"]

Tree = dict[str, Any]

SHORT_BYTES: Final = 1_000_000
"""Shorter profiles are validated and compared as a whole."""


@dataclass(frozen=True)
class Figures:
    """A profile as a tree, and where it is from."""

    tree: Tree
    path: str
    sha256: str
    version: str
    model: Profile
    """The same as a model; of a long profile only with the files of the most I/O time."""
    listed: int
    """Files that the profile lists."""


def read_figures(content: bytes, where: str, columns: Collection[Column], *, model_files: int = 1) -> Figures:
    """Read a profile's text; of a long one only some attributes of its files.

    Parameters
    ----------
    columns
        Attributes of files that are wanted, besides their paths.
    model_files
        So many files of a long profile are in `Figures.model`.

    Raises
    ------
    DocumentError
        It is not a valid profile. Unused attributes of files are not checked in a long profile.
    """
    saved = SavedProfile(content, where)
    part = saved.most_important(model_files if len(content) > SHORT_BYTES else None)
    tree = part.profile.model_dump(by_alias=True)
    if part.positions is not None:
        tree["files"] = saved.file_columns(columns)
    version = part.profile.generator.version
    return Figures(tree, where, saved.sha256, version, part.profile, len(tree["files"]))


def read_bytes(path: Path, *, todo: str = "", most: int | None = None) -> bytes:
    """Read a file, a pipe or a device, which may have no end; `most` bytes at most, or what a document may have.

    Raises
    ------
    DocumentError
        It cannot be read, or is longer.
    """
    most = MAX_BYTES if most is None else most
    refuse_named_pipe(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise DocumentError(f"cannot be read ({error.strerror})", where=path, todo=todo) from error
    if len(content) > most:
        if most == MAX_BYTES:
            todo = "; ".join(filter(None, (todo, "a profile is shorter with fewer files (`--files N`)")))
        raise DocumentError(f"is longer than {most >> 20} MiB", where=path, todo=todo)
    return content


def path_text(path: str | Path) -> str:
    """A path as text for any document; bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
