"""Definitions and events of OTF2 archives, read with the OTF2 library: nothing else reads OTF2 events."""

import contextlib
import ctypes
import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from vani.errors import InputError, TraceError
from vani.units import counted

_EVENTS_AT_ONCE = 1 << 20
_END = b"\x02\x01"
"""End of every file of definitions and events: the markers for end of file and end of buffer (OTF2_Buffer.h)."""
_CHUNK_HEADER, _FIRST_EVENT, _LAST_EVENT, _LITTLE_ENDIAN = 18, slice(2, 10), slice(10, 18), b"\x42"
"""Header of a chunk of events: its type, byte order, and the numbers of its first and last event."""
_LEAST_RECORD = 2
"""Bytes of the shortest record: its type and a field of one byte."""
_AGAIN = "copy it again with its folder, or trace the run again"
_SILENT = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p),
    *(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p),
)(lambda _data, _file, _line, _function, code, _form, _arguments: code)
"""Swallows the library's errors, which it would print."""


@contextlib.contextmanager
def open_archive(anchor: Path) -> "Iterator[Archive]":
    """Open an archive and read its definitions.

    Raises
    ------
    InputError
        The library is not installed.
    TraceError
        The anchor or the definitions are damaged.
    """
    try:
        # Part of an extra, so it is imported only here.
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
        # The library's callbacks print errors.
        with contextlib.redirect_stderr(io.StringIO()):
            reader = otf2.reader.Reader(str(anchor))
    except (_otf2.Error, otf2.error.Error, KeyError, ValueError, AttributeError) as error:
        raise TraceError(f"cannot be read as an archive of OTF2 ({_why(error)})", where=anchor, todo=_AGAIN) from None
    with contextlib.closing(reader):
        yield Archive(reader, anchor.with_suffix(""))


class Archive:
    """An open archive: its definitions, and the events of each location."""

    def __init__(self, reader: Any, folder: Path) -> None:
        """`folder` contains the files of the locations."""
        self._reader, self._folder = reader, folder
        self.definitions: Any = reader.definitions
        """`otf2.registry.DefinitionRegistry`."""
        self._opened = False
        self._undefined: set[int] = set()
        """Locations with damaged definitions of their own, so that their ids cannot be unified."""

    def read(self, location: int, callbacks: Mapping[str, Callable[..., object]]) -> str | None:
        """Call a function for each event of a location, in order.

        Parameters
        ----------
        callbacks
            Functions by event name, such as `IoOperationBegin`. Each receives the time in ticks, the attributes, and
            the event's own fields. Other events are skipped.

        Returns
        -------
        problem
            Reason why not all of the location's events could be read; None if they were.
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
            # The library stores only their addresses, so keep them alive until the events are read.
            forwards = {name: _forward(function) for name, function in callbacks.items()}
            for name, forward in forwards.items():
                getattr(_otf2, f"EvtReaderCallbacks_Set{name}Callback")(table, forward)
            _otf2.Reader_RegisterEvtCallbacks(handle, events, table, None)
            _otf2.EvtReaderCallbacks_Delete(table)
            promised, fault = self._promised(_otf2, location)
            left = promised
            while left > 0:
                read = _otf2.Reader_ReadLocalEvents(handle, events, min(left, _EVENTS_AT_ONCE))
                left = left - read if read else -1
            _otf2.Reader_CloseEvtReader(handle, events)
        except _otf2.Error as error:
            return f"{_why(error)}; its calls before that are read"
        if not fault and not left:
            return None
        return f"its events are {fault or 'damaged'}; {counted(promised, 'event')} of whole chunks are read"

    def _promised(self, library: Any, location: int) -> tuple[int, str]:
        """Number of events in the complete chunks of a location's file, and a word for its fault; empty if it is whole.

        The library does not stop at the end of a truncated file: it reads on in memory, which may contain another
        file's events; and it may never return if a header counts more events than there are. Chunks number their
        events consecutively, so only chunks up to the first contradiction count.
        """
        path = self._folder / f"{location}.evt"
        size, fault = path.stat().st_size, "" if _is_whole(path) else "cut off"
        of_chunk = library.Reader_GetChunkSize(self._reader.handle)[0]
        events = 0
        with path.open("rb") as file:
            for begin in range(0, size if not fault else size // of_chunk * of_chunk, of_chunk):
                file.seek(begin)
                header = file.read(_CHUNK_HEADER)
                order: Literal["little", "big"] = "little" if header[1:2] == _LITTLE_ENDIAN else "big"
                first, last = (int.from_bytes(header[part], order) for part in (_FIRST_EVENT, _LAST_EVENT))
                if first != events + 1 or not events <= last <= events + min(of_chunk, size - begin) // _LEAST_RECORD:
                    return events, "damaged"
                events = last
        return events, fault

    def _open(self, library: Any) -> None:
        """Open the files of all locations, and read their definitions, which unify ids and clocks."""
        if self._opened:
            return
        self._opened = True
        locations = [location._ref for location in self.definitions.locations]
        for location in locations:
            library.Reader_SelectLocation(self._reader.handle, location)
        # An archive with the same ids in all locations has no definitions per location.
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
    """The operation offset in an event's attributes; None if there is none."""
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
    """Whether a file ends with its writer's end markers; an empty or missing file does not."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_END), os.SEEK_END)
            return file.read() == _END
    except OSError:
        return False


def _why(error: Exception) -> str:
    return str(getattr(error, "description", None) or error or type(error).__name__)
