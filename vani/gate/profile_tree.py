"""Profiles as trees of plain values, in which paths are looked up."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, refuse_named_pipe
from vani.schema.document import MAX_BYTES
from vani.schema.profile import Profile
from vani.schema.saved_profile import Column, SavedProfile

Tree = dict[str, Any]

SHORT_BYTES: Final = 1_000_000
"""Longest profile that is validated and compared as a whole."""


@dataclass(frozen=True)
class Figures:
    """A profile as a tree, and its origin."""

    tree: Tree
    path: str
    sha256: str
    version: str
    model: Profile
    """The profile as a model. If it is long, only with the files of most I/O time."""
    listed: int
    """Number of files that the profile lists."""


def read_figures(content: bytes, where: str, columns: Collection[Column], *, model_files: int = 1) -> Figures:
    """Parse a profile. If it is long, only some attributes of its files are read.

    Parameters
    ----------
    columns
        Attributes of files to read in addition to their paths.
    model_files
        Number of files in `Figures.model` for a long profile.

    Raises
    ------
    DocumentError
        The text is not a valid profile. In a long profile, unused attributes of files are not checked.
    """
    saved = SavedProfile(content, where)
    part = saved.most_important(model_files if len(content) > SHORT_BYTES else None)
    tree = part.profile.model_dump(by_alias=True)
    if part.positions is not None:
        tree["files"] = saved.file_columns(columns)
    version = part.profile.generator.version
    return Figures(tree, where, saved.sha256, version, part.profile, len(tree["files"]))


def read_bytes(path: Path, *, todo: str = "", most: int | None = None) -> bytes:
    """Read a file, a pipe or a device, which may be endless. The limit is `most` bytes, or that of documents.

    Raises
    ------
    DocumentError
        The file cannot be read, or is longer.
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


def lists_all_files(tree: Mapping[str, Any]) -> bool:
    """Whether a profile tree lists every file of its data set."""
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total


def path_text(path: str | Path) -> str:
    """A path as text for any document. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
