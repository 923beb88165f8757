"""Check the number of ranks that the metadata of a trace claims against its other files."""

from __future__ import annotations

from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.source import Source
from vani.units import counted

__all__ = ["ranks_borne_out"]

_BELIEVED = 1 << 16
"""So many ranks cost nothing: such a number needs no check, and lost ranks are reported one by one."""
_LOST = 16
"""Of ranks with files of their own, one in so many must have them."""


def ranks_borne_out(source: Source, metadata: Metadata) -> tuple[int, str | None]:
    """Number of ranks to read, and a problem with the number that the metadata claims.

    Tables by rank take memory for each of them, so a large number counts only where `ug.mt`, the table of segments of
    `recorder.ts` or the files of the ranks have room for it.
    """
    claimed = metadata.ranks
    if claimed <= _BELIEVED:
        return claimed, None
    if metadata.layout.framed and _length(source, "recorder.ts") >= 8 * claimed:
        return claimed, None
    if metadata.interprocess:
        # The number of grammars follows the ranks.
        plausible, evidence = _length(source, "ug.mt") // 4 - 1, "ug.mt has room for"
        borne_out = plausible >= claimed
    else:
        with_files = source.ranks_with("cst", "cfg")
        plausible, evidence = max(with_files, default=0) + 1, "there are files of"
        borne_out = not metadata.layout.framed and _LOST * len(with_files) >= claimed
    if borne_out or plausible < 1 or plausible >= claimed:
        return claimed, None
    where = source.where("recorder.mt")
    return plausible, f"{where}: claims {counted(claimed, 'rank')}, {evidence} {plausible:,}: read as {plausible:,}"


def _length(source: Source, name: str) -> int:
    extent = source.extent(name)
    return 0 if extent is None else extent.length
