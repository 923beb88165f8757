"""Files (table XI) and their roles.

A file is

- temporary, if the last thing that happened to it in the run is its removal;
- intermediate, if one process (or app) wrote it and another read it later;
- output, if the run wrote it, set its length, emptied it (O_TRUNC), or made it (O_CREAT) and did not read it: what
  fills a file may leave no record (formatted output, mmap, copy_file_range, sendfile);
- input, if the run only read it.

Its size is that in the end of the run, by what was written since it was last emptied or cut (`measures/lengths.py`)
and by job.yaml. It is not known of files that were only read, for which the furthest that was asked for is a guess; of
files that were made or emptied, and of which no write since is recorded (they may be empty); that were written where
the trace does not tell, or may have been through a descriptor that the tracer does not follow; and where several
processes wrote to a file and cut it at about the same time.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import NO_VALUE
from vani.analyzers.entities.dependencies import exchanged_files
from vani.analyzers.entities.formats import attributes_by_calls, format_attributes, note_attributes
from vani.analyzers.entities.view import View, layer_name
from vani.analyzers.keyed import Keyed
from vani.analyzers.measures.lengths import lengths_of
from vani.analyzers.measures.survey import unfilled
from vani.calls import Layer
from vani.schema.formats import HEAD_BYTES, format_of_head, format_of_name
from vani.schema.profile import FileEntity, Role

__all__ = ["ROLES", "UNSIZED", "files", "format_by_library", "format_of_file", "is_output", "roles", "sizes"]


UNSIZED = (
    "null for files that were only read; that were made, and of which no write is recorded (formatted output, mmap, "
    "copy_file_range and sendfile leave no record; they may be empty); or that were written where the trace cannot tell"
)
"""Provenance of sizes that are null."""

ROLES: tuple[Role | None, ...] = (None, "input", "output", "intermediate", "temporary")


def roles(view: View) -> NDArray[np.int8]:
    """Role of every file of the data set as a place in `ROLES`, None where it was only opened; shape (files,)."""
    survey = view.measured.survey.files
    codes = view.files
    gone, used = survey.at(codes, "last_remove", -1), survey.at(codes, "last_use", -1)
    exchanged = np.isin(view.world.final_name[codes], np.array(sorted(exchanged_files(view)), np.int64))
    role: NDArray[np.int8] = np.where(survey.at(codes, "reads") > 0, 1, 0).astype(np.int8)
    role[is_output(survey, codes)] = 2
    role[exchanged] = 3
    role[(gone >= 0) & (gone >= used)] = 4
    found = np.zeros(view.world.files, np.int8)
    found[codes] = role
    return found


def is_output(survey: Keyed, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Files that the run wrote, as far as can be told without the order of calls; columns as those of the survey."""
    reads, writes, makes, empties, resizes = (
        survey.at(codes, n) > 0 for n in ("reads", "writes", "makes", "empties", "resizes")
    )
    return writes | resizes | empties | (makes & ~reads)


def sizes(view: View) -> NDArray[np.int64]:
    """Size of every file of the data set in the end, `NO_VALUE` where unknown; shape (files,)."""
    world, survey = view.world, view.measured.survey.files
    found, uncertain = lengths_of(world, view.measured.results["lengths"])
    found[uncertain] = NO_VALUE
    others: Keyed = view.measured.results["footprint"].others
    if len(others):
        appended = np.zeros(world.files + 1, np.int64)
        np.add.at(appended, view.cells.file(others.keys) + 1, others["appended"])
        more = appended[1:]
        # What is appended lies behind all else; where the file was not made by the run, how much that is is unknown.
        begun = (found != NO_VALUE) | (survey.at(np.arange(world.files), "makes") > 0)
        found = np.where((more > 0) & begun, np.where(found != NO_VALUE, found, 0) + more, found)
    if len(survey):
        unknown = unfilled(survey, world.known_sizes[survey.keys] != NO_VALUE) | (survey["unfollowed"] > 0)
        found[survey.keys[unknown]] = NO_VALUE
    if (found[view.files] == NO_VALUE).any():
        view.notes["files.size"] = UNSIZED
    return found


def format_of_file(view: View, path: str, layer: int | None) -> str:
    """Format by the file's first bytes where it is still there, by job.yaml, by the library used, else by suffix."""
    sampled = view.job.file_at(path) if view.job is not None else None
    if sampled is not None and sampled.format:
        return sampled.format
    by_name = format_of_name(path)
    head = _head(path)
    if head:
        found = format_of_head(head)
        if found is not None:
            # NetCDF-4 is HDF5 inside, npz is zip: the name says which.
            return by_name if by_name in ("netcdf", "npz") and found in ("hdf5", "zip") else found
    return format_by_library(layer) or by_name or "bin"


def format_by_library(layer: int | None) -> str | None:
    """Format that a library's files have."""
    if layer == Layer.HDF5:
        return "hdf5"
    return "netcdf" if layer in (Layer.NETCDF, Layer.PNETCDF) else None


def _head(path: str) -> bytes:
    """First bytes of a regular file of this machine; nothing where there is none. Never waits for a pipe."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return b""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(handle, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(handle)


def files(view: View, role_of: NDArray[np.int8], size_of: NDArray[np.int64]) -> list[FileEntity]:
    """The listed files, most I/O time first; `role_of` and `size_of` as `roles` and `sizes` give them."""
    interface = view.interface_of_files
    use: Keyed = view.measured.results["processes"].files
    by_app: Keyed = view.measured.results["processes"].apps
    operations: Keyed = view.measured.results["operations"]
    width = view.world.files + 1
    apps_of: dict[int, list[str]] = {}
    listed = np.isin(by_app.keys % width - 1, view.measured.listed)
    for key in by_app.keys[listed].tolist():
        apps_of.setdefault(key % width - 1, []).append(view.world.apps[key // width])
    strides = _strides(view)
    times = operations.rekeyed(view.cells.file(operations.keys), {"first": "min", "last": "max"})
    by_calls = attributes_by_calls(view)
    found = []
    for code in view.measured.listed.tolist():
        one = np.array([code])
        layer = int(interface[code]) if interface[code] >= 0 else None
        moved = int(times.at(one, "reads")[0] + times.at(one, "writes")[0])
        processes = int(use.at(one, "processes")[0])
        found.append(
            FileEntity(
                path=view.world.paths[code],
                format=format_of_file(view, view.world.paths[code], layer if moved else None),
                size=int(size_of[code]) if size_of[code] != NO_VALUE else None,
                role=ROLES[role_of[code]],
                access="shared" if processes >= 2 else "file_per_process",
                processes=processes,
                readers=int(use.at(one, "readers")[0]),
                writers=int(use.at(one, "writers")[0]),
                opens=int(times.at(one, "opens")[0]),
                interface=None if layer is None else layer_name(layer),  # type: ignore[arg-type]
                stride=strides.get(code),
                apps=apps_of.get(code, []),
                io=view.file_stats[code],
                first_s=max(0, int(times.at(one, "first")[0])) / 1e9,
                last_s=max(0, int(times.at(one, "last")[0])) / 1e9,
                format_attributes=format_attributes(view, code, by_calls),
            )
        )
    note_attributes(view)
    return found


def _strides(view: View) -> dict[int, int]:
    """Most common distance of each file's strided operations."""
    pairs = view.measured.results["access_pattern"].strides
    best: dict[int, tuple[int, int]] = {}
    for file, stride, count in zip(
        pairs.first.tolist(), pairs.second.tolist(), pairs.count.tolist(), strict=True
    ):
        if (count, -abs(stride)) > (best[file][0], -abs(best[file][1])) if file in best else True:
            best[file] = (count, stride)
    return {file: stride for file, (_, stride) in best.items()}
