"""Implements `vani plan snapshot`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.centre.plan.load.load_figures.snapshot import read_snapshot
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema.snapshot import Snapshot

def plan_snapshot(
    files: Sequence[PathLike],
    *,
    time: datetime | None = None,
    file_system: str | None = None,
) -> Snapshot:
    """Make a snapshot from output of Lustre's servers and clients.

    Missing figures are listed in `no_data`.

    Parameters
    ----------
    files
        Paths, or `NAME=FILE` for the output of the server NAME.
    time
        Time of the output; None takes the modification time of the oldest file.
    file_system
        The file system whose OSTs are wanted; None if there is only one.

    Raises
    ------
    InputError
        A file cannot be read or has no figures, there are several file systems, or figures are impossible.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - loads the models

    if not files:
        raise InputError("no file to read", todo="give what `lfs df` or `lctl get_param` printed")
    try:
        return read_snapshot([named_file(file) for file in files], time=time, file_system=file_system)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{place} is {str(first['input'])[:80]!r}: {first['msg']}",
            todo="correct the files or their names",
        ) from None


def named_file(given: PathLike) -> tuple[Path, str | None]:
    """A file and the server named before it; an existing path is a file even if it contains `=`."""
    text = str(given)
    name, sign, path = text.partition("=")
    if not sign or not name or Path(text).exists():
        return Path(text), None
    return Path(path), name
