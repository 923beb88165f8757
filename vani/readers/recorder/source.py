"""The parts of a trace, which are files in a directory or sections of one recorder.dat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from vani.errors import TraceError
from vani.readers.recorder.frames import MOST_TABLE_BYTES, read_file
from vani.readers.recorder.sections import Extent, Sections, open_sections
from vani.units import counted

__all__ = ["Extent", "Source", "open_source", "part_files"]

_COMBINED = "recorder.dat"
_PART = re.compile(r"VERSION|recorder\.(mt|ts|cst|dat)|ug\.(mt|cfg)|\d+\.(ts|cst|cfg|callsites)")
_RANK_PART = re.compile(r"([0-9]{1,9})\.(cst|cfg|callsites)")


class Source:
    """A trace's parts, by their names in the directory layouts.

    If a part's section in recorder.dat is empty or missing, the part may be a file next to it: without inter-process
    compression, rank 0 does not wait for the other ranks' files when it collects them.
    """

    def __init__(self, path: Path, sections: Sections | None) -> None:
        self.path = path
        self._sections = sections

    def problems(self, ranks: int) -> list[str]:
        """Faults of the section table, for a trace with this number of ranks."""
        if self._sections is None:
            return []
        strays = self._sections.beyond(ranks)
        return self._sections.problems if strays is None else [*self._sections.problems, strays]

    def extent(self, name: str) -> Extent | None:
        """Place of a part; None if there is none."""
        if self._sections is not None:
            extent = self._sections.extent(name)
            if extent is not None and extent.length:
                return extent
        path = self.path / name
        try:
            return Extent(path, 0, path.stat().st_size) if path.is_file() else None
        except OSError:
            return None

    def read(self, name: str) -> bytes:
        """Read a part into memory.

        Raises
        ------
        TraceError
            The part is missing, unreadable or too large.
        """
        extent = self._in_sections(name)
        if extent is None:
            return read_file(self.path / name)
        if extent.length > MOST_TABLE_BYTES:
            raise TraceError(f"section for {name} has {counted(extent.length, 'byte')}", where=extent.path)
        try:
            with extent.path.open("rb") as file:
                file.seek(extent.offset)
                return file.read(extent.length)
        except OSError as error:
            raise TraceError(f"cannot be read ({error.strerror})", where=self.where(name)) from error

    def read_ranks(self, ranks: Iterable[int], suffix: str) -> Iterator[bytes | TraceError]:
        """Read small parts of many ranks, in order; recorder.dat is opened only once."""
        places: dict[int, tuple[int, int]] = {}
        if self._sections is not None:
            ranks_, offset, length = self._sections.of_ranks(suffix)
            small = length <= MOST_TABLE_BYTES
            columns = (column[small].tolist() for column in (ranks_, offset, length))
            places = {rank: (at, size) for rank, at, size in zip(*columns, strict=True)}
        with ExitStack() as stack:
            opened: BinaryIO | None = None
            for rank in ranks:
                try:
                    if rank not in places:
                        yield self.read(f"{rank}.{suffix}")
                        continue
                    if opened is None:
                        opened = stack.enter_context((self.path / _COMBINED).open("rb"))
                    opened.seek(places[rank][0])
                    yield opened.read(places[rank][1])
                except OSError as error:
                    yield TraceError(f"cannot be read ({error.strerror})", where=self.path / _COMBINED)
                except TraceError as error:
                    yield error

    def _in_sections(self, name: str) -> Extent | None:
        """Place of a part's section; None if the part is a file.

        Raises
        ------
        TraceError
            It is neither.
        """
        if self._sections is None:
            return None
        extent = self._sections.extent(name)
        if extent is not None and extent.length:
            return extent
        if (self.path / name).exists():
            return None
        raise TraceError(
            f"{self._sections.missing(name)}, which is not next to it", where=self._sections.path
        )

    def ranks_with(self, *suffixes: str) -> list[int]:
        """Ranks with a part whose name ends with one of these suffixes, ascending."""
        try:
            names = [entry.name for entry in self.path.iterdir()]
        except OSError as error:
            raise TraceError(f"cannot be listed ({error.strerror})", where=self.path) from error
        ranks = {
            int(match[1]) for name in names if (match := _RANK_PART.fullmatch(name)) and match[2] in suffixes
        }
        if self._sections is not None:
            for suffix in suffixes:
                ranks.update(self._sections.of_ranks(suffix)[0].tolist())
        return sorted(ranks)

    def names(self, suffix: str) -> bool:
        """Return whether ranks' parts with such names were written, even if they are lost now."""
        return (self._sections is not None and self._sections.names(suffix)) or bool(self.ranks_with(suffix))

    def surplus_ranks(self, ranks: int) -> int:
        """Number of ranks with files that cannot belong to the run of `ranks` ranks described by the folder's metadata.

        A run leaves one file per rank, or one for all (`ug.cfg`); the next run in the same folder replaces files of
        the same name.
        """
        owners = self.ranks_with("cfg", "cst")
        if self.extent("ug.cfg") is not None:
            return len(owners)
        return sum(rank >= ranks for rank in owners)

    def where(self, name: str) -> str:
        """Name a part for a message."""
        if self._sections is not None:
            extent = self._sections.extent(name)
            if (extent is not None and extent.length) or not (self.path / name).exists():
                return f"{self._sections.path} ({name})"
        return str(self.path / name)


def part_files(path: Path) -> list[Path]:
    """The files of a trace directory that are read, by name.

    Raises
    ------
    OSError
        The directory cannot be listed.
    """
    return sorted(p for p in path.iterdir() if _PART.fullmatch(p.name) and p.is_file())


def open_source(path: Path, *, combined: bool) -> Source:
    """Open the parts of the trace at `path`.

    Raises
    ------
    TraceError
        The section table of recorder.dat cannot be read.
    """
    return Source(path, open_sections(path / _COMBINED) if combined else None)
