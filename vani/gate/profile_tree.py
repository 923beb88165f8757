"""Profiles as trees of plain values, in which attribute paths are looked up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, refuse_named_pipe
from vani.schema.columns_of_files import Column
from vani.schema.document import loads
from vani.schema.long_profile import excerpt, file_columns
from vani.schema.profile import Profile
from vani.schema.reading import MAX_BYTES

__all__ = ["Figures", "Tree", "path_text", "read_bytes", "read_figures"]

Tree = dict[str, Any]

SHORT_BYTES: Final = 1_000_000
"""Shorter profiles are read and validated as a whole, which takes a tenth of a second at most."""


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
    model_positions: tuple[int, ...] | None = None
    """Positions of the model's files in the whole list; None: it has all of them."""


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
        It is no valid profile. Of a long profile, attributes of files that nobody wants are not looked at.
    """
    part = excerpt(content, model_files) if len(content) > SHORT_BYTES else None
    if part is not None:
        files = file_columns(content, columns)
        model = _model(part.text, where) if files is not None else None
        if files is not None and model is not None:
            tree = model.model_dump(by_alias=True) | {"files": files}
            return _figures(tree, model, where, content, model_positions=part.kept)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text", where=where, todo="give a profile.yaml") from error
    profile = loads(text, Profile, where=where)
    return _figures(profile.model_dump(by_alias=True), profile, where, content, model_positions=None)


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
    """A path as text that every document can hold; bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _model(text: bytes, where: str) -> Profile | None:
    """The excerpt as a model; None for one with an error, which the whole text shows at the right line."""
    try:
        return loads(text.decode("utf-8-sig"), Profile, where=where)
    except (DocumentError, UnicodeDecodeError):
        return None


def _figures(
    tree: Tree, model: Profile, where: str, content: bytes, *, model_positions: tuple[int, ...] | None
) -> Figures:
    digest = hashlib.sha256(content).hexdigest()
    return Figures(tree, where, digest, model.generator.version, model, len(tree["files"]), model_positions)
