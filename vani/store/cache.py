"""Where stores lie when the user names no place: in the cache directory, by the digest of their trace."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from vani.errors import StoreError
from vani.store.manifest import STORE_SCHEMA
from vani.store.read import Store, open_store

__all__ = ["cache_directory", "find_store", "store_path", "sweep"]

_MOST_BYTES = 20 << 30
_ABANDONED_S = 24 * 3600.0


def cache_directory() -> Path | None:
    """`$VANI_CACHE`, else `vani/` in the user's cache directory (XDG base directory specification).

    None where the user has no home, as a container's user that no table of users knows.
    """
    named = os.environ.get("VANI_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base, "vani")
    try:
        return Path.home() / ".cache" / "vani"
    except RuntimeError:
        return None


def store_path(folder: Path, name: str, digest: str) -> Path:
    """Place of a trace's store in a folder of stores: the trace's name, for people, and its digest."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".")[:60] or "trace"
    version = STORE_SCHEMA.rpartition("/")[2]
    return folder / f"{plain}-{digest[:16]}-v{version}"


def find_store(path: Path, digest: str) -> Store | None:
    """The store at `path` if it is whole and of the trace with this digest."""
    try:
        store = open_store(path)
    except StoreError:
        return None
    return store if store.manifest.digest == digest else None


def sweep(folder: Path) -> None:
    """Drop what interrupted runs left, and the stores that were not used for longest beyond 20 GiB."""
    stores = []
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    now = time.time()
    for entry in entries:
        try:
            changed = entry.stat().st_mtime
        except OSError:
            continue
        if entry.name.startswith(".") and entry.name.endswith((".partial", ".old")):
            if now - changed > _ABANDONED_S:
                shutil.rmtree(entry, ignore_errors=True)
        elif (entry / "manifest.json").is_file():
            size = sum(f.stat().st_size for f in entry.rglob("*") if f.is_file())
            stores.append((changed, size, entry))
    total = sum(size for _, size, _ in stores)
    for _, size, entry in sorted(stores):
        if total <= _MOST_BYTES:
            break
        shutil.rmtree(entry, ignore_errors=True)
        total -= size
