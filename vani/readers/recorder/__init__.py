"""Recorder traces: layouts 2.3 to 3.0 and the combined files of 2025-26."""

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vani.errors import TraceError, UnknownFormatError
from vani.readers.files import entries_of
from vani.readers.recorder.call_table import keys_have_sites
from vani.readers.recorder.source import NEWEST, Inflater, format_of, read_file

_RANK_FILE = re.compile(r"\d+\.(ts|cst|cfg|itf|mt)$")
_PART = re.compile(r"(recorder|ug|\d+)\.(mt|dat|ts|cst|cfg|itf)")


@dataclass(frozen=True, eq=False)
class Shape:
    """The kind of trace in a directory."""

    path: Path
    version: str
    layout: str
    """A name of `metadata.LAYOUTS`."""
    combined: bool = False
    """Whether all parts are in one recorder.dat."""
    newer: str | None = None
    """The version that is newer than Vani knows; None if it is known."""


def is_recorder(path: Path) -> bool:
    """Return whether a path is a directory with any Recorder file, readable or not."""
    if not path.is_dir():
        return False
    names = {entry.name for entry in entries_of(path)}
    if names & {"recorder.mt", "recorder.dat", "recorder.ts", "VERSION"}:
        return True
    return any(_RANK_FILE.fullmatch(name) for name in names)


def has_recorder_parts(path: Path) -> bool:
    """Return whether a path is a directory with parts of a trace; a lone VERSION, as in sources, does not count."""
    return path.is_dir() and any(_PART.fullmatch(entry.name) for entry in entries_of(path))


def is_recorder_part(name: str) -> bool:
    """Return whether a file with this name in a trace belongs to it."""
    return bool(_PART.fullmatch(name)) or name == "VERSION" or name.endswith(".callsites")


def probe(path: Path) -> Shape:
    """Recognise the layout of the trace directory at `path`.

    Raises
    ------
    UnknownFormatError
        The version is not supported, or there is no Recorder trace.
    TraceError
        A Recorder trace lacks files that are needed to decode it.
    """
    names = {entry.name for entry in entries_of(path)}
    if any(name.endswith(".itf") for name in names):
        raise UnknownFormatError(
            "is a trace of Recorder 2.0-2.2 (.itf files)",
            where=path,
            todo="convert it with recorder2parquet of that release, or trace again with Recorder 2.3 or newer",
        )
    # Then recorder.mt and VERSION come from an earlier run, because the tracer removes its own.
    if "recorder.dat" in names:
        number = format_of(path / "recorder.dat")
        newer = f"recorder.dat is of format {number}, known are 1 and {NEWEST}" if number > NEWEST else None
        return Shape(path, "3.x", "3.x-sites" if number > 1 else "3.x", combined=True, newer=newer)
    if "VERSION" in names:
        version = read_file(path / "VERSION", most=4096).decode("ascii", "replace").strip("\0 \n\r")
        # Both layouts of 2.5 call themselves 2.5.0; one has all time stamps in one file, the other has a file per rank.
        common_times = "recorder.ts" in names or not any(re.fullmatch(r"\d+\.ts", name) for name in names)
        layout = _layout_of(version, common_times)
        if layout is None:
            raise UnknownFormatError(
                f"Recorder format {version[:20]!r}; known are 2.3, 2.4, 2.5 and 3.0",
                where=path / "VERSION",
                todo="convert it with the Recorder that wrote it, or update Vani",
            )
        if "recorder.mt" not in names:
            raise _aborted(path, names)
        is_known = re.fullmatch(r"2.*|3\.0.*", version)
        newer = None if is_known else f"VERSION says {version}, known are 2.3 to 2.5 and 3.0"
        return Shape(path, version, layout, newer=newer)
    if "recorder.mt" in names:
        head = read_file(path / "recorder.mt")[:4]
        if len(head) == 4 and 3 <= int.from_bytes(head, "little") <= 99:
            return Shape(path, "3.x", "3.x-sites" if _has_sites(path, names) else "3.x")
        raise TraceError(
            "has recorder.mt but no VERSION, and is of none of the layouts that have none",
            where=path,
            todo="if VERSION was lost, put it back: 5 characters such as 3.0.0",
        )
    if any(_RANK_FILE.fullmatch(name) for name in names) or "recorder.ts" in names:
        raise _aborted(path, names)
    raise UnknownFormatError(
        "is not a Recorder trace",
        where=path,
        todo="name a folder with recorder.dat, or recorder.mt and VERSION",
    )


def _has_sites(path: Path, names: set[str]) -> bool:
    """Return whether the keys of a trace with several files have call sites, which only the keys show."""
    tables = sorted((n for n in names if re.fullmatch(r"\d+\.cst", n)), key=lambda n: int(n[:-4]))
    table = path / ("recorder.cst" if "recorder.cst" in names else tables[0] if tables else "recorder.cst")
    if not table.is_file():
        return False
    try:
        with closing(Inflater(table, 16, max(0, table.stat().st_size - 16))) as stream:
            return keys_have_sites(stream.read(64))
    except (TraceError, OSError):
        return False


def _layout_of(version: str, has_common_times: bool) -> str | None:
    if re.fullmatch(r"2\.3(\.\d+)?", version):
        return "2.3"
    if re.fullmatch(r"2\.[45](\.\d+)?", version):
        return "2.5g" if has_common_times else "2.5p"
    # A newer version may use the last known layout; the reader will find out.
    return "3.0" if re.fullmatch(r"[3-9](\.\d{1,3}){1,2}", version) else None


def _aborted(path: Path, names: set[str]) -> TraceError:
    missing = [name for name in ("VERSION", "recorder.mt") if name not in names]
    for suffix, what in ((".cst", "call tables"), (".cfg", "grammars")):
        if not any(name.endswith(suffix) for name in names):
            missing.append(f"{what} ({suffix})")
    return TraceError(
        f"is what an aborted run leaves: {', '.join(missing)} missing, so nothing can be decoded",
        where=path,
        todo="trace again and let the program reach MPI_Finalize (or exit)",
    )



