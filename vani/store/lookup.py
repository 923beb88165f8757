"""Finds the stores from which a profile was made, by the contents of its traces, in any folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import StoreError
from vani.store.cache import store_path
from vani.store.read import Store, open_store

if TYPE_CHECKING:
    # When a trace is decoded, documents are imported meanwhile or not at all.
    from vani.schema.profile import TraceEntity

def stores_in(folder: Path, traces: Sequence[TraceEntity] | None = None) -> list[Store]:
    """Complete stores: `folder` itself, or those directly in it, by name.

    Parameters
    ----------
    traces
        Only stores with the names that `store_path` gives these traces, because a cache may have thousands.
    """
    if (folder / "manifest.json").is_file():
        return list(_opened([folder]))
    try:
        below = sorted(p for p in folder.iterdir() if (p / "manifest.json").is_file())
    except OSError:
        return []
    if traces is not None:
        # Everything but digest and version.
        begin = tuple(
            {store_path(folder, Path(t.path).name, "").name.rpartition("--v")[0] + "-" for t in traces}
        )
        below = [p for p in below if p.name.startswith(begin)]
    return list(_opened(below))


def _opened(places: Sequence[Path]) -> Iterator[Store]:
    for place in places:
        try:
            yield open_store(place)
        except StoreError:
            continue


def store_of(trace: TraceEntity, stores: Sequence[Store]) -> Store | None:
    """The store of a profile's trace: the same calls of the same functions, preferably from the same place or name."""
    same = [
        s
        for s in stores
        if s.manifest.ranks == trace.ranks
        and s.manifest.records == trace.records
        and s.manifest.functions == trace.functions
    ]
    name = Path(trace.path).name
    same.sort(key=lambda s: (s.manifest.source != trace.path, Path(s.manifest.source).name != name))
    return same[0] if same else None


def store_with(file: Path) -> Path | None:
    """The store that a file belongs to, or would belong to because of its name; None if there is none."""
    if file.name != "manifest.json" and file.suffix != ".parquet":
        return None
    for folder in (file.parent, file.parent.parent):
        if (folder / "manifest.json").is_file() and (folder / "calls").is_dir():
            return folder
    return None
