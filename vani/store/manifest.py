"""manifest.json: the contents of a store, their origin, and whether the store is complete.

A store is valid if its manifest exists (it is written last, before the folder gets its name), has this
version, names the digest of the trace's current state, and gives every part its actual size.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vani.calls import CALL_SITE, CALLS
from vani.errors import StoreError

STORE_SCHEMA = "vani.store/3"
"""Stores with another schema are not read."""
_NAME, _CALLS = "manifest.json", "calls"
_TABLES = ("_files.parquet", "_functions.parquet", "_renames.parquet")
_PART = re.compile(r"calls/[\w-]+\.parquet", re.ASCII)
"""Pattern of part names, which excludes files elsewhere or outside the store."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
"""Mode bits that no file of a store may have."""


@dataclass(frozen=True)
class PartEntry:
    """One Parquet file: the calls of `ranks[0] .. ranks[1] - 1`."""

    file: str
    ranks: tuple[int, int]
    rows: int
    size: int


@dataclass(frozen=True)
class Manifest:
    """Facts about a whole trace that are known without reading calls. Times are nanoseconds on the ranks' clocks."""

    source: str
    digest: str
    tool: str
    format: str
    layout: str
    app: str
    ranks: int
    records: int
    start_unix_s: float | None
    first_ns: int | None
    span_ns: int
    functions: dict[str, int]
    complete: bool
    problems: list[str]
    limits: list[tuple[str, str]]
    repaired_times: int
    facts: list[tuple[str, list[str], int]]
    parts: list[PartEntry]
    vani: str
    columns: list[str]
    """Names and types of the columns of a call when the store was written."""
    bytes: float = 0.0
    """Total bytes of all calls, including library calls."""
    time_ns: float = 0.0
    """Total time of all calls."""
    schema: str = STORE_SCHEMA
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def begin_ns(self) -> int:
        """Start of the trace on its own clocks: negative if one was set back to before the start of the tracer."""
        return min(0, self.first_ns or 0)

    def write(self, folder: Path) -> None:
        """Write manifest.json into the folder."""
        (folder / _NAME).write_text(json.dumps(asdict(self), indent=1, ensure_ascii=True), encoding="ascii")


def columns_now(*, call_sites: bool = False) -> list[str]:
    """Names and types of the columns of a call that this version of Vani writes, with the call site if requested."""
    return [f"{field.name}: {field.type}" for field in (*CALLS, *([CALL_SITE] if call_sites else []))]


def read_manifest(store: Path, *, made_here: bool = False) -> Manifest:
    """Read and check the manifest of the store at `store`.

    Parameters
    ----------
    made_here
        This process wrote it, so its owner and mode are not examined, which some file systems invent.

    Raises
    ------
    StoreError
        It is missing, incomplete, of another version, or another user could have written it.
    """
    path = store / _NAME
    try:
        raw = json.loads(path.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise StoreError(
            "is not a store: it has no manifest.json", where=store, todo="make one with `vani convert`"
        ) from error
    except (OSError, ValueError) as error:
        raise StoreError(
            "cannot be read", where=path, todo="make the store again with `vani convert`"
        ) from error
    if not isinstance(raw, dict) or raw.get("schema") != STORE_SCHEMA:
        schema = raw.get("schema") if isinstance(raw, dict) else None
        raise StoreError(
            f"is a store of schema {schema!r}, not {STORE_SCHEMA}",
            where=path,
            todo="make it again with `vani convert`",
        )
    try:
        parts = [
            PartEntry(str(p["file"]), (p["ranks"][0], p["ranks"][1]), p["rows"], p["size"])
            for p in raw.pop("parts")
        ]
        raw["limits"] = [(a, b) for a, b in raw["limits"]]
        raw["facts"] = [(a, list(b), c) for a, b, c in raw["facts"]]
        manifest = Manifest(parts=parts, **raw)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StoreError(
            "is not whole", where=path, todo="make the store again with `vani convert`"
        ) from error
    if manifest.columns not in (columns_now(), columns_now(call_sites=True)):
        raise StoreError(
            "has the columns of another version of Vani",
            where=store,
            todo="make it again with `vani convert`",
        )
    sizes = {part.file: part.size for part in manifest.parts}
    for name, size in sizes.items():
        if _PART.fullmatch(name) is None or _state(store, name, stat.S_IFREG).st_size != size:
            raise _changed(store, name)
    for name in (*sizes, *_TABLES, _NAME, _CALLS, ""):
        kind = stat.S_IFDIR if name in (_CALLS, "") else stat.S_IFREG
        status = _state(store, name, kind)
        if not made_here:
            _check_owner(store / name, status)
    return manifest


def _state(store: Path, name: str, kind: int) -> os.stat_result:
    """Status of a file or folder of a store, or of the store itself; links, which may lead out of it, are refused.

    Raises
    ------
    StoreError
        It is something else, or does not exist.
    """
    try:
        # The user may have replaced a whole store with a link.
        status = (store / name).lstat() if name else store.stat()
    except OSError as error:
        raise _changed(store, name) from error
    if stat.S_IFMT(status.st_mode) != kind:
        raise _changed(store, name)
    return status


def _changed(store: Path, name: str) -> StoreError:
    return StoreError(
        f"{name} is missing or was changed", where=store, todo="make the store again with `vani convert`"
    )


def _check_owner(file: Path, status: os.stat_result) -> None:
    # Anyone who can write it can invent numbers, and root can anyway.
    if status.st_uid not in (os.geteuid(), 0):
        what = "belongs to another user"
    elif status.st_mode & OTHERS_WRITE:
        what = "may be written by other users"
    else:
        return
    raise StoreError(
        f"{what}: it is not believed", where=file, todo="make a store of your own with `vani convert`"
    )
