"""A run as callers pass it: a profile, or a trace, which is profiled first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.api.characterise import characterise_in
from vani.api.run import Run
from vani.errors import InputError, UnknownFormatError
from vani.schema.syntax.detection import is_document, may_be_document

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

def is_trace(source: PathLike) -> bool:
    """Whether a path is read as a trace: true for a folder, and for a file that a format recognises.

    A file that starts like a Vani document is a document even if a format recognises it; no reader is loaded for
    it.

    Raises
    ------
    InputError
        The file is neither a document nor a trace.
    """
    path = Path(source)
    if _is_folder(path):
        return True
    if not path.is_file() or is_document(path):
        return False
    from vani.readers.formats import format_of  # noqa: PLC0415 - loads Arrow
    from vani.readers.open import open_trace  # noqa: PLC0415

    if format_of(path, named=True) is not None:
        return True
    if not may_be_document(path):
        try:
            open_trace(path)
        except UnknownFormatError as error:
            raise InputError(error.what, where=path, todo=f"{error.todo}, or name a profile") from error
    return False


def profile_of(
    run: Run,
    source: PathLike | Profile,
    *,
    system: PathLike | System | None = None,
    files: int | None,
) -> PathLike | Profile:
    """Return a profile or its path unchanged; profile a trace first.

    Parameters
    ----------
    files
        Number of files that a profile made here lists.
    """
    if isinstance(source, (str, Path)) and is_trace(source):
        return characterise_in(run, source, system=system, files=files).profile
    return source


def read_profile(source: PathLike | Profile) -> Profile:
    """The model of a profile; raises InputError if it cannot be read."""
    if not isinstance(source, (str, Path)):
        return source
    from vani.schema.profile import Profile as Model  # noqa: PLC0415 - loads pydantic

    return Model.load(source)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
