"""File systems that the run used, from its trace or job.yaml, and the storage targets of its files."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.view import Notes, View
from vani.schema.profile import Mount, TargetUse

NOT_A_KIND: Final = ("autofs", "dvs", "rootfs")
"""Types of mounts that point to file systems of other types."""
_SLOWEST: Final = 10
"""Maximum number of targets that a profile lists individually."""
_KEY: Final = "storage.mounts"
_BY_TABLE: Final = "the mount table of the logs, which has room for some mounts alone, and of these no /"
_NO_TABLE: Final = "the trace has no mount table: pass job.yaml of `vani collect` with --job"

Codes = NDArray[np.int64]


def mount_above(path: str, table: list[tuple[str, str]]) -> tuple[str, str] | None:
    """Folder and type of the mount in a mount table that contains a path; None if only / does."""
    containing = [
        (folder, kind)
        for folder, kind in table
        if folder != "/" and f"{path}/".startswith(f"{folder.rstrip('/')}/") and kind not in NOT_A_KIND
    ]
    return max(containing, key=lambda mount: len(mount[0]), default=None)


def mounts(view: View) -> tuple[list[Mount] | None, Notes]:
    """Every file system with a file of the data set; the trace's mounts take precedence over those in job.yaml."""
    table = list(view.measured.mounts)
    of_job = [(mount.dir, mount.type) for mount in (view.job.mounts if view.job is not None else None) or ()]
    if not table and not of_job:
        return None, {_KEY: _NO_TABLE}
    place_of_folder: dict[str, tuple[str, str] | None] = {}
    files: dict[tuple[str, str], list[int]] = {}
    for code in view.files.tolist():
        folder = posixpath.dirname(view.workload.paths[code])
        if folder not in place_of_folder:
            place_of_folder[folder] = _place(folder, table, of_job)
        place = place_of_folder[folder]
        if place is not None:
            files.setdefault(place, []).append(code)
    rows = [_mount(view, *place, np.array(codes)) for place, codes in sorted(files.items())]
    return rows, {_KEY: _BY_TABLE if table else view.job_name}


def _place(folder: str, table: list[tuple[str, str]], of_job: list[tuple[str, str]]) -> tuple[str, str] | None:
    if not folder.startswith("/"):
        return None
    place = mount_above(folder, table)
    if place is None and of_job:
        containing = [m for m in of_job if f"{folder}/".startswith(f"{m[0].rstrip('/')}/")]
        place = max(containing, key=lambda mount: len(mount[0]), default=None)
    return None if place is None else (place[0], place[1].lower())


def _mount(view: View, folder: str, kind: str, codes: Codes) -> Mount:
    on_targets = view.measured.targets
    if on_targets is None:
        return Mount(dir=folder, type=kind)
    own = np.isin(on_targets.file, codes)
    if not own.any():
        return Mount(dir=folder, type=kind)
    target, place = np.unique(on_targets.target[own], return_inverse=True)
    files = np.bincount(place)
    moved = np.bincount(place, on_targets.bytes[own])
    read, write = (np.bincount(place, of[own]) / files / 1e9 for of in (on_targets.read_ns, on_targets.write_ns))
    slowest = np.argsort(-(read + write), kind="stable")[:_SLOWEST].tolist()
    target_counts = Counter(on_targets.of_system[code] for code in codes.tolist() if code in on_targets.of_system)
    return Mount(
        dir=folder,
        type=kind,
        targets=max(target_counts, default=None),
        used_targets=len(target),
        median_read_s=float(np.median(read)),
        median_write_s=float(np.median(write)),
        slowest_targets=[
            TargetUse(
                target=int(target[i]),
                files=int(files[i]),
                bytes=int(moved[i]),
                read_s=float(read[i]),
                write_s=float(write[i]),
            )
            for i in slowest
        ],
    )
