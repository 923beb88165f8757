"""Recognise OTF2 archives by their files: an anchor, definitions, and a folder with one file per location."""

from __future__ import annotations

from pathlib import Path

from vani.errors import TraceError
from vani.readers.natural_order import natural

_ANCHOR = ".otf2"
_PARTS = (_ANCHOR, ".def", ".evt")


def is_otf2(path: Path) -> bool:
    """Return whether a path is an archive's anchor, or a folder with one, damaged or not."""
    try:
        return bool(_anchors(path)) if path.is_dir() else _is_anchor(path)
    except OSError:
        return False


def is_otf2_part(name: str) -> bool:
    """Return whether a file with this name in an archive belongs to it."""
    return name.endswith(_PARTS)


def anchor_of(path: Path) -> Path:
    """The anchor of an archive, which names all its other files.

    Raises
    ------
    TraceError
        The folder cannot be listed, or has several anchors.
    """
    if not path.is_dir():
        return path
    try:
        anchors = _anchors(path)
    except OSError as error:
        raise TraceError(f"cannot be listed ({error.strerror})", where=path) from error
    if not anchors:
        raise TraceError("contains no archive of OTF2", where=path, todo="trace the run again")
    if len(anchors) > 1:
        raise TraceError(
            f"contains {len(anchors)} archives of OTF2", where=path, todo=f"name one, such as {anchors[0]}"
        )
    return anchors[0]


def files_of(path: Path) -> list[Path]:
    """All files of an archive: the anchor first, locations in natural order."""
    anchor = anchor_of(path)
    if not anchor.with_suffix(".def").exists():
        raise TraceError(
            f"is the anchor of an archive whose definitions, {anchor.with_suffix('.def').name}, are missing",
            where=anchor,
            todo="copy the archive whole",
        )
    folder = anchor.with_suffix("")
    locations = [file for file in folder.iterdir() if is_otf2_part(file.name)] if folder.is_dir() else []
    return [anchor, anchor.with_suffix(".def"), *sorted(locations, key=lambda file: natural(file.name))]


def _anchors(folder: Path) -> list[Path]:
    return sorted(filter(_is_anchor, folder.iterdir()), key=lambda file: natural(file.name))


def _is_anchor(path: Path) -> bool:
    # Reading a named pipe would block forever.
    return path.name.endswith(_ANCHOR) and path.is_file()
