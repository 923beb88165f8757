"""The library of OTF2, the only one that reads its events: definitions, and the events of a location in order."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from vani.errors import InputError, TraceError
from vani.units import counted

__all__ = ["Archive", "offset_of", "open_archive"]

_EVENTS_AT_ONCE = 1 << 20
_END = b"\x02\x01"
"""Ends every file of definitions and events: the end of the file, and of the buffer (OTF2_Buffer.h)."""
_CHUNK_HEADER, _LAST_EVENT, _LITTLE_ENDIAN = 18, slice(10, 18), b"\x42"
"""The header of a chunk of events: its type, byte order, and the numbers of its first and last event."""
_AGAIN = "copy it again with its folder, or trace the run again"
_SILENT = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p),
    *(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p),
)(lambda _data, _file, _line, _function, code, _form, _arguments: code)
"""Takes the library's errors, which it prints otherwise."""


@contextlib.contextmanager
def open_archive(anchor: Path) -> Iterator[Archive]:
    """Open an archive and read its definitions.

    Raises
    ------
    InputError
        The library is not installed.
    TraceError
        The anchor or the definitions are damaged.
    """
    try:
        # An extra, loaded where it is used.
        import _otf2  # noqa: PLC0415
        import otf2  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"is an archive of OTF2, which takes the package otf2 ({error})",
            where=anchor,
            todo="pip install 'vani-io[otf2]'",
        ) from None
    _otf2.Config.conf.lib.OTF2_Error_RegisterCallback(_SILENT, None)
    definitions = anchor.with_suffix(".def")
    if definitions.exists() and not _is_whole(definitions):
        what = f"cannot be read as an archive of OTF2 ({definitions.name} is cut off)"
        raise TraceError(what, where=anchor, todo=_AGAIN)
    try:
        # Callbacks print the errors that they meet.
        with contextlib.redirect_stderr(io.StringIO()):
            reader = otf2.reader.Reader(str(anchor))
    except (_otf2.Error, otf2.error.Error, KeyError, ValueError, AttributeError) as error:
        raise TraceError(f"cannot be read as an archive of OTF2 ({_why(error)})", where=anchor, todo=_AGAIN) from None
    with contextlib.closing(reader):
        yield Archive(reader, anchor.with_suffix(""))


class Archive:
    """An open archive: its definitions, and the events of each location."""

    def __init__(self, reader: Any, folder: Path) -> None:
        """`folder`: of the files of locations."""
        self._reader, self._folder = reader, folder
        self.definitions: Any = reader.definitions
        """`otf2.registry.DefinitionRegistry`."""
        self._opened = False
        self._undefined: set[int] = set()
        """Locations whose own definitions are damaged: their numbers cannot be unified."""

    def read(self, location: int, callbacks: Mapping[str, Callable[..., object]]) -> str | None:
        """Call a function for each event of a location, in order.

        Parameters
        ----------
        callbacks
            By the name of an event (`IoOperationBegin`): takes the time in ticks, the attributes, and what the event
            has. Events of other names are passed over.

        Returns
        -------
        problem
            Why the location's events could not be read to the end; None where they were.
        """
        import _otf2  # noqa: PLC0415

        handle = self._reader.handle
        try:
            self._open(_otf2)
            if location in self._undefined:
                return "its definitions are damaged or missing"
            events = _otf2.Reader_GetEvtReader(handle, location)
            if not events:
                return "its events are missing"
            table = _otf2.EvtReaderCallbacks_New()
            # The library knows their addresses alone: they live until the events are read.
            forwards = {name: _forward(function) for name, function in callbacks.items()}
            for name, forward in forwards.items():
                getattr(_otf2, f"EvtReaderCallbacks_Set{name}Callback")(table, forward)
            _otf2.Reader_RegisterEvtCallbacks(handle, events, table, None)
            _otf2.EvtReaderCallbacks_Delete(table)
            promised, whole = self._promised(_otf2, location)
            left = promised
            while left > 0:
                read = _otf2.Reader_ReadLocalEvents(handle, events, min(left, _EVENTS_AT_ONCE))
                left = left - read if read else -1
            _otf2.Reader_CloseEvtReader(handle, events)
        except _otf2.Error as error:
            return f"{_why(error)}; its calls before that are read"
        if whole and not left:
            return None
        return f"its events are cut off; {counted(promised, 'event')} of whole chunks are read"

    def _promised(self, library: Any, location: int) -> tuple[int, bool]:
        """How many events the whole chunks of a location's file contain, and whether these are all of the file.

        The library does not stop at the end of a file that is cut off: it reads on in memory, where the events of
        another file may be.
        """
        path = self._folder / f"{location}.evt"
        size, whole = path.stat().st_size, _is_whole(path)
        of_chunk = library.Reader_GetChunkSize(self._reader.handle)[0]
        chunks = -(-size // of_chunk) if whole else size // of_chunk
        if not chunks:
            return 0, False
        with path.open("rb") as file:
            file.seek((chunks - 1) * of_chunk)
            header = file.read(_CHUNK_HEADER)
        order: Literal["little", "big"] = "little" if header[1:2] == _LITTLE_ENDIAN else "big"
        return int.from_bytes(header[_LAST_EVENT], order), whole

    def _open(self, library: Any) -> None:
        """Open the files of all locations, and read their own definitions, by which numbers and clocks are unified."""
        if self._opened:
            return
        self._opened = True
        locations = [location._ref for location in self.definitions.locations]
        for location in locations:
            library.Reader_SelectLocation(self._reader.handle, location)
        # Archives whose numbers are the same everywhere have no definitions of locations.
        if any(self._folder.glob("*.def")):
            library.Reader_OpenDefFiles(self._reader.handle)
            for location in locations:
                self._read_own(library, location)
            library.Reader_CloseDefFiles(self._reader.handle)
        library.Reader_OpenEvtFiles(self._reader.handle)

    def _read_own(self, library: Any, location: int) -> None:
        path = self._folder / f"{location}.def"
        if path.exists() and not _is_whole(path):
            self._undefined.add(location)
            return
        try:
            own = library.Reader_GetDefReader(self._reader.handle, location)
            library.Reader_ReadAllLocalDefinitions(self._reader.handle, own)
            library.Reader_CloseDefReader(self._reader.handle, own)
        except library.Error:
            self._undefined.add(location)


def offset_of(attributes: Any, attribute: int | None) -> int | None:
    """The attribute of an event with the offset of an operation; None where it has none."""
    if attributes is None or attribute is None:
        return None
    import _otf2  # noqa: PLC0415

    if not _otf2.AttributeList_TestAttributeByID(attributes, attribute):
        return None
    return int(_otf2.AttributeList_GetUint64(attributes, attribute))


def _forward(function: Callable[..., object]) -> Callable[..., None]:
    def forward(_location: int, time: int, _position: int, _data: Any, attributes: Any, *fields: Any) -> None:
        function(time, attributes, *fields)

    return forward


def _is_whole(path: Path) -> bool:
    """Whether a file ends as its writer ended it; an empty or missing file does not."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_END), os.SEEK_END)
            return file.read() == _END
    except OSError:
        return False


def _why(error: Exception) -> str:
    return str(getattr(error, "description", None) or error or type(error).__name__)
