"""The formats that Vani reads: those in the table below, then those of plug-ins.

A plug-in is an entry point of the group `vani.readers` that names a `Format`. Plug-ins are loaded only if no built-in
format matches, or to list all formats: most traces need none, and a broken one does not affect other formats.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vani.errors import InputError, VaniError
from vani.plug_ins import described, plug_ins
from vani.readers.darshan import is_darshan, is_darshan_part, is_named_darshan, is_parser_text
from vani.readers.dftracer import is_dftracer, is_dftracer_part
from vani.readers.otf2 import is_otf2, is_otf2_part
from vani.readers.parquet import is_converted, is_parquet, is_parquet_part, open_parquet
from vani.readers.recorder.probe import has_recorder_parts, is_recorder, is_recorder_part
from vani.readers.recorder.reader import RecorderReader
from vani.readers.strace import is_named_strace, is_strace, is_strace_part
from vani.readers.trace_reader import Format, TraceReader

ENTRY_POINTS = "vani.readers"
"""Entry points of this group name a `vani.readers.trace_reader.Format`."""


def _on_use(name_of_reader: str) -> Callable[[Path], TraceReader]:
    """A function that makes a reader, `module.Class` below this package, and imports it then: most traces need one."""
    module, _, name = name_of_reader.rpartition(".")

    def open_with_it(path: Path) -> TraceReader:
        reader: TraceReader = getattr(importlib.import_module(f"vani.readers.{module}"), name)(path)
        return reader

    return open_with_it


def _open_darshan(path: Path) -> TraceReader:
    reader = "parser_text.ParserTextReader" if is_parser_text(path) else "reader.DarshanReader"
    return _on_use(f"darshan.{reader}")(path)


BUILT_IN = (
    # A Recorder trace may contain converted copies of itself; the original has more detail.
    Format("recorder", is_recorder, RecorderReader, is_recorder_part, has_recorder_parts),
    Format("parquet", is_parquet, open_parquet, is_parquet_part, is_converted),
    Format("darshan", is_darshan, _open_darshan, is_darshan_part, is_named_darshan),
    Format("dftracer", is_dftracer, _on_use("dftracer.reader.DFTracerReader"), is_dftracer_part),
    Format("otf2", is_otf2, _on_use("otf2.reader.Otf2Reader"), is_otf2_part),
    Format("strace", is_strace, _on_use("strace.reader.StraceReader"), is_strace_part, is_named_strace),
)


@dataclass(frozen=True, eq=False)
class _PlugIns:
    """Formats from entry points."""

    formats: tuple[Format, ...]
    broken: tuple[InputError, ...]


def formats() -> tuple[Format, ...]:
    """All formats, in the order in which they are tried.

    Raises
    ------
    InputError
        Another distribution's entry point cannot be loaded.
    """
    more = _plug_ins()
    if more.broken:
        raise more.broken[0]
    return (*BUILT_IN, *more.formats)


def format_of(path: Path, *, named: bool) -> Format | None:
    """The first format that recognises a path as its trace; plug-ins that fail are skipped.

    Parameters
    ----------
    named
        The user named the path; otherwise it was discovered below a folder that is not a trace.

    Raises
    ------
    TraceError
        A folder cannot be listed.
    """
    for built_in in BUILT_IN:
        if built_in.is_at(path, named=named):
            return built_in
    for plug_in in _plug_ins().formats:
        try:
            if plug_in.is_at(path, named=named):
                return plug_in
        except VaniError:
            raise
        except Exception:
            # `unusable` reports it if no other format matches.
            continue
    return None


def has_plug_ins() -> bool:
    """Return whether there are any plug-in formats; loads them."""
    return bool(_plug_ins().formats)


def unusable(path: Path) -> list[InputError]:
    """Failures of plug-ins that tried to recognise a path."""
    more = _plug_ins()
    errors = list(more.broken)
    for plug_in in more.formats:
        try:
            plug_in.is_at(path, named=True)
        except VaniError:
            continue
        except Exception as error:
            errors.append(
                InputError(
                    f"the format {plug_in.name!r} cannot detect whether this is its trace ({described(error)})",
                    where=path,
                    todo="update or uninstall the package that brings it",
                )
            )
    return errors


@functools.cache
def _plug_ins() -> _PlugIns:
    plug_in_formats: list[Format] = []
    broken: list[InputError] = []
    for point in plug_ins(ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:
            fault = f"the format of entry point {point.name!r} cannot be loaded ({described(error)})"
        else:
            if isinstance(loaded, Format):
                plug_in_formats.append(loaded)
                continue
            fault = f"entry point {point.name!r} is not a vani.readers.trace_reader.Format"
        broken.append(
            InputError(fault, where=point.value, todo="update or uninstall the package that brings it")
        )
    return _PlugIns(tuple(plug_in_formats), tuple(broken))
