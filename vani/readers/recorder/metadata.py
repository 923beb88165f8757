"""recorder.mt: tracer settings and function names (format document, sections 4, 8, 9)."""

import math
import re
import struct
from dataclasses import dataclass, replace

from vani.errors import TraceError
from vani.readers.recorder.source import CUT_OFF
from vani.units import counted


@dataclass(frozen=True, eq=False)
class TraceLayout:
    """Layout of a trace version: versions are rows of this table, not branches in the code."""

    name: str
    fields: str
    """`struct` format of the metadata; field names are in `names`."""
    names: tuple[str, ...]
    functions_at: int
    function_bytes: int
    """Width of the function id in a call's key: 1 or 4."""
    counted: bool
    """Call-table entries contain rank and count."""
    framed: bool
    """Tables are zlib frames, and all time stamps are in one recorder.ts."""
    site_bytes: int = 0
    """Width of the call site in a call's key: 4, or 0 if keys have none."""
    ninth_flag: int = 0
    """Position of the byte after eight flags, which Recorder with DAOS uses as a ninth; 0 if there is none."""


_OLD = "ranks start resolution buffer algorithm"
_NEW = "start resolution buffer compressed_times interprocess interprocess_patterns intraprocess_patterns"
_SWITCHES = "posix mpi mpiio hdf5 pnetcdf netcdf thread depth"
_ROWS = (
    # Name, struct format, names of its fields, position of the functions, width of function ids, whether entries are
    # counted, whether tables are frames, position of a ninth flag.
    ("2.3", "<i4xddii", _OLD, 32, 1, False, False, 0),
    ("2.5p", "<i4xddiii4x", f"{_OLD} interprocess", 40, 1, True, False, 0),
    ("2.5g", "<i6?6xddi4?", f"ranks posix mpi mpiio hdf5 thread depth {_NEW}", 40, 1, True, True, 0),
    ("3.0", "<i8?4xddi4?", f"ranks {_SWITCHES} {_NEW}", 1024, 4, True, True, 12),
    ("3.x", "<5i8?4xddi4?", f"major minor patch ranks functions {_SWITCHES} {_NEW}", 56, 4, True, True, 28),
)
LAYOUTS: dict[str, TraceLayout] = {
    name: TraceLayout(name, fields, tuple(names.split()), at, width, counted=counts, framed=framed, ninth_flag=ninth)
    for name, fields, names, at, width, counts, framed, ninth in _ROWS
}
# Format 2 of recorder.dat.
LAYOUTS["3.x-sites"] = replace(LAYOUTS["3.x"], name="3.x-sites", site_bytes=4)

_MAX_RANKS = 10_000_000
_LAYERS = (*_SWITCHES.split()[:6], "daos")
_FLAGS = {*_LAYERS, "thread", "depth", *_NEW.split()[3:]}
_DAOS = re.compile(rb"[\0\n](?:dfs|daos)_")


@dataclass(frozen=True, eq=False)
class Metadata:
    """Contents of recorder.mt; values that the layout lacks are None."""

    layout: TraceLayout
    ranks: int
    start_unix_s: float
    resolution_s: float
    interprocess: bool
    compressed_times: bool
    interprocess_patterns: bool
    intraprocess_patterns: bool
    stores_thread: bool | None
    stores_depth: bool | None
    layers_traced: dict[str, bool]
    functions: tuple[str, ...]
    version: str | None


def decode_metadata(buffer: bytes, layout: TraceLayout, *, where: str) -> Metadata:
    """Decode and check recorder.mt (or section 0 of recorder.dat).

    Raises
    ------
    TraceError
        The file is too short, or has a value that no tracer writes.
    """
    layout = _with_daos(layout, buffer)
    size = struct.calcsize(layout.fields)
    if len(buffer) < max(size, layout.functions_at):
        raise TraceError(
            f"has {counted(len(buffer), 'byte')}, the {layout.name} layout needs {layout.functions_at:,}",
            where=where,
            todo=CUT_OFF,
        )
    # struct accepts any nonzero byte as true for `?`, so flags are read as numbers and checked by hand.
    fields = layout.fields.replace("?", "B")
    value = dict(zip(layout.names, struct.unpack_from(fields, buffer), strict=True))
    faults = []
    for flag in _FLAGS & value.keys():
        if value[flag] not in (0, 1):
            faults.append(f"claims {value[flag]} for the flag {flag}")
        value[flag] = bool(value[flag])
    resolution, start = value["resolution"], value["start"]
    if not 1 <= value["ranks"] <= _MAX_RANKS:
        faults.append(f"claims {counted(value['ranks'], 'rank')}")
    if not (math.isfinite(resolution) and 1e-12 <= resolution <= 1):
        faults.append(f"claims a time resolution of {resolution} s")
    if not (math.isfinite(start) and 0 <= start <= 4e9):
        faults.append(f"claims to have started at {start}")
    if faults:
        raise TraceError(faults[0], where=where, todo=f"the file is damaged or not of layout {layout.name}")
    names = (
        _fixed_names(buffer, value["functions"], where)
        if "functions" in value
        else _line_names(buffer[layout.functions_at :], where)
    )
    version = f"{value['major']}.{value['minor']}.{value['patch']}" if "major" in value else None
    return Metadata(
        layout=layout,
        ranks=value["ranks"],
        start_unix_s=start,
        resolution_s=resolution,
        interprocess=value.get("interprocess", False),
        compressed_times=value.get("compressed_times", False),
        interprocess_patterns=value.get("interprocess_patterns", False),
        intraprocess_patterns=value.get("intraprocess_patterns", False),
        stores_thread=value.get("thread"),
        stores_depth=value.get("depth"),
        layers_traced={name: value[name] for name in _LAYERS if name in value},
        functions=names,
        version=version,
    )


def _with_daos(layout: TraceLayout, buffer: bytes) -> TraceLayout:
    """The layout with the flag that Recorder with DAOS inserts before those of threads and depths, in the same version.

    That build has DAOS functions, or sets the byte after the eight flags, which other builds leave at 0.
    """
    at = layout.ninth_flag
    if not at or not (buffer[at : at + 1] == b"\1" or _DAOS.search(buffer)):
        return layout
    before = layout.names.index("thread")
    names = (*layout.names[:before], "daos", *layout.names[before:])
    return replace(layout, fields=layout.fields.replace("8?4x", "9?3x"), names=names)


def _line_names(text: bytes, where: str) -> tuple[str, ...]:
    if not text.endswith(b"\n"):
        raise TraceError("ends within the list of functions", where=where, todo=CUT_OFF)
    names = tuple(line.decode("ascii", "replace") for line in text[:-1].split(b"\n"))
    return _checked(names, where)


def _fixed_names(buffer: bytes, count: int, where: str) -> tuple[str, ...]:
    if not 1 <= count <= 100_000 or len(buffer) != 56 + 64 * count:
        raise TraceError(
            f"claims {counted(count, 'function')} in {counted(len(buffer), 'byte')}", where=where, todo=CUT_OFF
        )
    cells = [buffer[56 + 64 * i : 120 + 64 * i] for i in range(count)]
    return _checked(tuple(cell.split(b"\0", 1)[0].decode("ascii", "replace") for cell in cells), where)


def _checked(names: tuple[str, ...], where: str) -> tuple[str, ...]:
    for name in names:
        if not name or len(name) > 128 or not all(c.isascii() and (c.isalnum() or c == "_") for c in name):
            raise TraceError(f"names a function {name[:40]!r}", where=where)
    if len(names) > 32_000:
        raise TraceError(f"names {counted(len(names), 'function')}", where=where)
    return names
