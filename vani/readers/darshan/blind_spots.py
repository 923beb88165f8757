"""I/O that happened but that a Darshan log does not count: modules off or full, and excluded names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.counts import NotCounted
from vani.readers.darshan.records import Records

Ids = NDArray[np.uint64]

_FILE_SYSTEM: Final = ("POSIX", "STDIO")
"""Modules that count file-system calls; a program may use only one of them."""
_LIBRARIES: Final = ("MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
_SWITCHES: Final = {"mod_disable": "DARSHAN_MOD_DISABLE"}
_EXCLUSIONS: Final = {
    "exclude_dirs": "DARSHAN_EXCLUDE_DIRS",
    "name_exclude": "NAME_EXCLUDE of DARSHAN_CONFIG_PATH",
    "rank_exclude": "DARSHAN_RANK_EXCLUDE",
    "app_exclude": "DARSHAN_APP_EXCLUDE",
}
"""Notes that a site or a run may add to a log's header (lower case, without `darshan_`), and their settings."""
_MOST_FILES: Final = 10
STREAMS: Final = ("<STDIN>", "<STDOUT>", "<STDERR>")
"""Record names of the standard streams, which are not files."""
_MORE_MEMORY: Final = "run it with more memory for Darshan: DARSHAN_MODMEM=64 (MiB) in the job's environment"


def not_counted(records: Records, name_of: Mapping[int, str]) -> list[NotCounted]:
    """I/O that the log does not count, as its own records show; the most important comes first."""
    return [*_off(records, name_of), *_partial(records), *_excluded(records)]


def _off(records: Records, name_of: Mapping[int, str]) -> list[NotCounted]:
    """Modules without records although other modules have records of I/O that they would have counted."""
    counted = _ids(records, _FILE_SYSTEM)
    switched = _setting(records, _SWITCHES)
    missing = [name for name in _FILE_SYSTEM if not _has(records, name)]
    witnesses = {
        "POSIX": {
            **{name: records.modules[name].id for name in _LIBRARIES if _has(records, name)},
            "DXT": _of_table(records.calls),
            "the heat map": _of_heat(records, "heatmap:POSIX"),
        },
        "STDIO": {"the heat map": _of_heat(records, "heatmap:STDIO")},
    }
    if not _has(records, "POSIX") and not _has(records, "STDIO"):
        witnesses["POSIX"]["LUSTRE"] = _of_table(records.layouts)
    spots = []
    for name in missing:
        # By sorting: numpy 2.0's lookup table overflows if 64-bit ids are close to one another.
        shown = {of: ids[~np.isin(ids, counted, kind="sort")] for of, ids in witnesses[name].items()}
        shown = {of: ids for of, ids in shown.items() if len(ids)}
        if not shown and name not in switched:
            continue
        cause = f"{name} has no record"
        if shown:
            cause += f", though {' and '.join(shown)} {'has' if len(shown) == 1 else 'have'} records of the same run"
        if name in switched:
            cause += ": the log states that it was switched off (DARSHAN_MOD_DISABLE)"
        paths = dict.fromkeys(name_of.get(id_, "") for ids in shown.values() for id_ in ids.tolist())
        spots.append(
            NotCounted(
                "module_off",
                (name,),
                tuple(path for path in paths if path.startswith("/"))[:_MOST_FILES],
                cause,
                f"run it with the module on: unset DARSHAN_MOD_DISABLE and set DARSHAN_MOD_ENABLE={name} in the "
                "job's environment",
            )
        )
    streams = [id_ for id_, name in name_of.items() if name in STREAMS]
    if not spots and "POSIX" in missing and np.isin(counted, np.array(streams, np.uint64), kind="sort").all():
        spots.append(
            NotCounted(
                "module_off",
                _FILE_SYSTEM,
                (),
                "the log counts no call on a file (the program made none, or Darshan was not loaded into it)",
                "run it with LD_PRELOAD=libdarshan.so (DARSHAN_ENABLE_NONMPI=1 without MPI), or trace it: "
                "`vani trace --tracer strace -- COMMAND`",
            )
        )
    return spots


def _partial(records: Records) -> list[NotCounted]:
    full = [name for name in records.partial if name in _FILE_SYSTEM]
    libraries = [name for name in records.partial if name in _LIBRARIES]
    cause = "{} dropped records when Darshan's memory ran out"
    spots = []
    if full:
        spots.append(NotCounted("module_partial", tuple(full), (), cause.format(" and ".join(full)), _MORE_MEMORY))
    if libraries:
        # The file-system calls that these libraries make are counted separately and completely.
        text = cause.format(" and ".join(libraries)) + ", but the file-system calls below are counted"
        spots.append(NotCounted("module_partial", tuple(libraries), (), text, _MORE_MEMORY, most_s=0.0))
    if records.mixed:
        cause = f"{records.mixed:,} records of POSIX have calls of streams added to them, and are left out"
        spots.append(NotCounted("module_partial", ("POSIX",), (), cause, "run it with Darshan 3.1 or later"))
    return spots


def _excluded(records: Records) -> list[NotCounted]:
    names = _setting(records, _EXCLUSIONS)
    if not names:
        return []
    settings = " and ".join(dict.fromkeys(names.values()))
    return [
        NotCounted(
            "names_excluded",
            tuple(names),
            (),
            f"Darshan was set to leave out {', '.join(names)} ({settings})",
            "run it with DARSHAN_EXCLUDE_DIRS=none, and without other lists of names to leave out",
        )
    ]


def _setting(records: Records, names: Mapping[str, str]) -> dict[str, str]:
    """Values of settings in the log's header, each with the setting's name."""
    words: dict[str, str] = {}
    for key, value in records.metadata.items():
        setting = names.get(key.lower().removeprefix("darshan_"))
        if setting is not None:
            words |= {word: setting for word in value.replace(";", ",").split(",") if word.strip()}
    return words


def _has(records: Records, name: str) -> bool:
    return name in records.modules and len(records.modules[name]) > 0


def _ids(records: Records, names: Iterable[str]) -> Ids:
    return np.concatenate([np.empty(0, np.uint64), *(records.modules[n].id for n in names if _has(records, n))])


def _of_table(table: Mapping[str, NDArray[np.generic]] | None) -> Ids:
    return np.empty(0, np.uint64) if table is None else np.unique(table["id"]).astype(np.uint64)


def _of_heat(records: Records, layer: str) -> Ids:
    """Ids of the records in a layer's heat map that moved bytes."""
    if records.heat is None or not len(records.heat["id"]):
        return np.empty(0, np.uint64)
    name_of = dict(zip(records.ids.tolist(), records.names, strict=True))
    moved = (records.heat["read"] > 0).any(axis=1) | (records.heat["write"] > 0).any(axis=1)
    ids = np.unique(records.heat["id"][moved]).astype(np.uint64)
    return ids[[name_of.get(id_) == layer for id_ in ids.tolist()]] if len(ids) else ids
