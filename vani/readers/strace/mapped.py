"""Memory-mapped files, whose reads and writes bypass system calls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import scalar, to_arrow, to_numpy
from vani.readers.strace.lines import Calls
from vani.readers.strace.names import Spellings

_MMAP = (
    r"^[^,]*, [^,]*, (?P<access>[A-Z_|]+), (?P<flags>\w+(?:\|\w+)*), "
    r"\d+<(?P<path>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?, [^,]*$"
)
_NAMES = ("mmap", "mmap2")


class Maps:
    """Counts the mappings of each file by use, without the loader's mappings of programs and libraries."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()

    def see(self, calls: Calls, spellings: Spellings) -> None:
        """Add the calls of a block."""
        names = calls.name.dictionary.to_pylist()
        if not set(_NAMES).intersection(names):
            return
        is_map: NDArray[np.bool_] = np.array([name in _NAMES for name in names], np.bool_)
        at = np.flatnonzero(is_map[to_numpy(calls.name.indices)] & (calls.value >= 0))
        fields = pc.extract_regex(calls.args.take(to_arrow(at)), _MMAP)
        fields = fields.filter(pc.is_valid(fields))
        columns = [pc.struct_field(fields, name) for name in ("access", "flags", "path")]
        # No line contains a newline.
        distinct = pc.value_counts(pc.binary_join_element_wise(*columns, scalar("\n"))).to_pylist()
        for entry in distinct:
            access, flags, path = entry["values"].split("\n")
            use = _use(access.split("|"), flags.split("|"))
            if use:
                (code,) = spellings.codes(pa.array([path]), pa.array([""])).tolist()
                self._counts[use, code] += entry["counts"]

    def files(self) -> set[int]:
        """Files that were mapped for shared writing."""
        return {code for use, code in self._counts if use == "shared_write"}

    def counts(self) -> list[tuple[str, int, int]]:
        """(`shared_write` or `read`, file, number of calls), in order of first appearance."""
        return [(use, code, count) for (use, code), count in self._counts.items()]


def _use(access: list[str], flags: list[str]) -> str:
    if "PROT_EXEC" in access or "MAP_DENYWRITE" in flags:
        return ""
    is_shared = "MAP_SHARED" in flags or "MAP_SHARED_VALIDATE" in flags
    if is_shared and "PROT_WRITE" in access:
        return "shared_write"
    return "read" if is_shared or "PROT_READ" in access else ""
