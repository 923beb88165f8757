"""Files (table XI) and their roles.

A file is

- temporary, if the last thing that happened to it in the run is its removal;
- intermediate, if one process (or app) wrote it and another read it later;
- output, if the run wrote it;
- input, if the run only read it.

Its size is the furthest that the run is known to have reached in it (writes, truncations, job.yaml); for files that
were only read, the furthest that was asked for is a guess and is not given.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from vani.analyzers.base import NO_VALUE
from vani.analyzers.entities.dependencies import exchanged_files
from vani.analyzers.entities.view import View, layer_name
from vani.analyzers.keyed import Keyed
from vani.calls import Layer
from vani.schema.formats import HEAD_BYTES, format_of_head, format_of_name
from vani.schema.profile import FileEntity, Role

__all__ = ["files", "format_by_library", "format_of_file", "roles", "sizes"]


def roles(view: View) -> dict[int, Role | None]:
    """Role of every file of the data set; None where it was only opened."""
    survey = view.measured.survey.files
    exchanged = exchanged_files(view)
    codes = view.files
    reads, writes = survey.at(codes, "reads"), survey.at(codes, "writes")
    removed, opened = survey.at(codes, "last_remove", -1), survey.at(codes, "last_use", -1)
    found: dict[int, Role | None] = {}
    for code, read, write, gone, used in zip(
        codes.tolist(), reads.tolist(), writes.tolist(), removed.tolist(), opened.tolist(), strict=True
    ):
        if gone >= 0 and gone >= used:
            found[code] = "temporary"
        elif int(view.world.final_name[code]) in exchanged:
            found[code] = "intermediate"
        elif write:
            found[code] = "output"
        else:
            found[code] = "input" if read else None
    return found


def sizes(view: View) -> dict[int, int | None]:
    """Size of every file of the data set as far as the run or job.yaml tells."""
    last = view.facts.ends.last(view.world.files)
    reach: Keyed = view.measured.survey.reach
    furthest = np.full(view.world.files, NO_VALUE)
    if len(reach):
        np.maximum.at(furthest, reach.keys // 4097, reach["reach"])
    others: Keyed = view.measured.results["footprint"].others
    appended = np.zeros(view.world.files + 1, np.int64)
    if len(others):
        np.add.at(appended, view.cells.file(others.keys) + 1, others["appended"])
    found: dict[int, int | None] = {}
    for code in view.files.tolist():
        size = max(int(last[code]), int(furthest[code]))
        found[code] = (
            size + int(appended[code + 1]) if size != NO_VALUE else (int(appended[code + 1]) or None)
        )
    return found


def format_of_file(view: View, path: str, layer: int | None) -> str:
    """Format by the file's first bytes where it is still there, by job.yaml, by the library used, else by suffix."""
    if view.job is not None and view.job.dataset is not None:
        for sampled in view.job.dataset.files:
            if sampled.path == path and sampled.format:
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


def files(view: View, role_of: dict[int, Role | None], size_of: dict[int, int | None]) -> list[FileEntity]:
    """The listed files, most I/O time first."""
    interface = view.interface_of_files
    use: Keyed = view.measured.results["processes"].files
    by_app: Keyed = view.measured.results["processes"].apps
    operations: Keyed = view.measured.results["operations"]
    width = view.world.files + 1
    apps_of: dict[int, list[str]] = {}
    for key in by_app.keys.tolist():
        apps_of.setdefault(key % width - 1, []).append(view.world.apps[key // width])
    strides = _strides(view)
    times = operations.rekeyed(view.cells.file(operations.keys), {"first": "min", "last": "max"})
    found = []
    for code in view.measured.listed.tolist():
        one = np.array([code])
        layer = interface.get(code)
        moved = int(times.at(one, "reads")[0] + times.at(one, "writes")[0])
        processes = int(use.at(one, "processes")[0])
        found.append(
            FileEntity(
                path=view.world.paths[code],
                format=format_of_file(view, view.world.paths[code], layer if moved else None),
                size=size_of.get(code),
                role=role_of.get(code),
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
            )
        )
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
