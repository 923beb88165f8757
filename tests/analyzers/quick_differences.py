"""Differences between a quick profile and the full one, and omissions without a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vani.schema.profile import Profile

__all__ = ["differences", "without_reason"]


def differences(quick: Profile, full: Profile) -> list[tuple[str, Any, Any]]:
    """(attribute, quick, full) for every attribute with another value in the quick profile; null is not a value."""
    return [found for found in _pairs(quick, full) if found[1] is not None and found[1] != found[2]]


def without_reason(quick: Profile, full: Profile) -> set[str]:
    """Attributes that only the full profile gives, and whose null the quick one does not explain."""
    missing = {_attribute(where) for where, a, b in _pairs(quick, full) if a is None and b not in (None, [])}
    return {where for where in missing if not _explained(where, quick.provenance)}


def _pairs(quick: Profile, full: Profile) -> Iterator[tuple[str, Any, Any]]:
    a, b = quick.model_dump(), full.model_dump()
    del a["provenance"], b["provenance"]
    # Both follow from times.
    del a["verdict"], b["verdict"], a["unseen"], b["unseen"]
    # The selection and order of listed files, folders and functions depend on I/O time.
    listed = {f["path"]: f for f in b.pop("files")}
    yield from (pair for f in a.pop("files") for pair in _walk(f, listed[f["path"]], "files"))
    yield from _walk(a, b, "")


def _walk(a: Any, b: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if where.endswith((".calls", "folders", "patterns")) and isinstance(a, list) and isinstance(b, list):
        mine, others = ({row.get("path") or row.get("pattern") or row["name"]: row for row in rows} for rows in (a, b))
        # All but the costliest share a row without a name.
        for name in (mine.keys() & others.keys()) - {None}:
            yield from _walk(mine[name], others[name], where)
    elif where == "accesses" and isinstance(a, list):
        mine, others = ({(row["file"], row["direction"], row["layer"]): row for row in rows} for rows in (a, b))
        yield from ((f"{where}.file", key, None) for key in mine.keys() - others.keys())
        for key, row in others.items():
            yield from _walk(mine[key], row, where) if key in mine else [(f"{where}.file", None, key)]
    elif isinstance(a, dict) and isinstance(b, dict):
        # Attributes of a file that are null are left out.
        same = a.keys() <= b.keys() if where == "files" else a.keys() == b.keys()
        assert same or where.endswith(("functions", "format", "roles", "histogram", "bytes_by_size")), where
        for key in a.keys() | b.keys():
            yield from _walk(a.get(key), b.get(key), f"{where}.{key}".removeprefix("."))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _walk(one, other, f"{where}[{index}]")
    else:
        yield where, a, b


def _attribute(where: str) -> str:
    """The path without positions; that of IOSTATS starts at `io` for every entity."""
    where = re.sub(r"\[\d+\]", "", where)
    return re.sub(r"^.*?(?=\bio\.)", "", where)


def _explained(where: str, provenance: dict[str, str]) -> bool:
    parts = where.split(".")
    return any(".".join(parts[:n]) in provenance for n in range(1, len(parts) + 1))
