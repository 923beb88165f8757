"""OTF2 archives, the format of Score-P: an anchor, definitions, and a folder with one file of events per location."""

from pathlib import Path

from vani.errors import TraceError
from vani.readers.files import entries_of, in_natural_order

_ANCHOR = ".otf2"
_PARTS = (_ANCHOR, ".def", ".evt")


def is_otf2(path: Path) -> bool:
    """Return whether a path is an archive's anchor, or a folder with one, damaged or not."""
    try:
        return any(map(_is_anchor, path.iterdir() if path.is_dir() else [path]))
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
    anchors = in_natural_order(list(filter(_is_anchor, entries_of(path))))
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
    return [anchor, anchor.with_suffix(".def"), *in_natural_order(locations)]


def _is_anchor(path: Path) -> bool:
    # Reading a named pipe would block forever.
    return path.name.endswith(_ANCHOR) and path.is_file()
