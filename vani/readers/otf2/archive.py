"""The library of OTF2, the only one that reads its events: definitions, and the events of a location in order."""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vani.errors import InputError, TraceError

__all__ = ["Archive", "offset_of", "open_archive"]

_EVENTS_AT_ONCE = 1 << 20
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
            while _otf2.Reader_ReadLocalEvents(handle, events, _EVENTS_AT_ONCE) == _EVENTS_AT_ONCE:
                pass
            _otf2.Reader_CloseEvtReader(handle, events)
        except _otf2.Error as error:
            return f"{_why(error)}; its calls before that are read"
        return None

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


def _why(error: Exception) -> str:
    return str(getattr(error, "description", None) or error or type(error).__name__)
