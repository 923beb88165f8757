"""Valid runs of invented programs, written by the trace writer, with counts made in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.traces.recorder_writer import Call, write_trace

__all__ = ["Program", "programs"]

TICKS = 10_000_000
"""Ticks per second."""
UNKNOWN = 2**56
"""No process can address this much: a size from here on is an error code or a tracer's mistake (docs/formats.md)."""

_ORDINARY = [0, 1, 100, 4096, 47_008, 2**20]
_LARGE = [2**31, 2**53 - 1, 2**53, 2**53 + 1, UNKNOWN - 1]
_IMPOSSIBLE = [UNKNOWN, 10**18, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -1]


@dataclass(frozen=True)
class Program:
    """Calls of each rank, in one layout."""

    layout: str
    ranks: tuple[tuple[Call, ...], ...]
    moved: tuple[tuple[str, int], ...]
    """Direction and size of each data operation."""
    metadata: int
    sync: int

    def write(self, folder: Path) -> None:
        write_trace(folder, self.ranks, layout=self.layout)  # type: ignore[arg-type]

    def differs(self, profile: Any) -> str | None:
        """How a profile differs from what the program did; None if it does not.

        A profile may be null for bytes that cannot be counted.
        """
        io = profile.workflow.io
        for kind, wanted in (
            ("read", sum(side == "read" for side, _ in self.moved)),
            ("write", sum(side == "write" for side, _ in self.moved)),
            ("metadata", self.metadata),
            ("sync", self.sync),
        ):
            if getattr(io.ops, kind) != wanted:
                return f"ops.{kind} is {getattr(io.ops, kind)}, the program did {wanted}"
        for side, found in (("read", io.bytes.read), ("write", io.bytes.written)):
            sizes = [size for way, size in self.moved if way == side]
            sound = [size for size in sizes if 0 <= size < UNKNOWN]
            if len(sound) == len(sizes) and sum(sizes) < 2**62:
                if found != sum(sizes):
                    return f"bytes of {side}s are {found}, the program moved {sum(sizes)}"
            elif found is not None and (found != sum(sound) or not any(t.problems for t in profile.traces)):
                return f"bytes of {side}s are {found} and no problem is named, the program asked for {sizes}"
        return None


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """One to three ranks with up to three files each, impossible sizes included, and clocks set back."""
    layout = draw(st.sampled_from(["2.3", "2.4", "2.5p", "2.5g", "3.0", "3.x-mt", "3.x-dat", "3.x-dat2"]))
    kinds = draw(
        st.sampled_from([_ORDINARY, _ORDINARY, _ORDINARY + _LARGE, _ORDINARY + _LARGE + _IMPOSSIBLE])
    )
    size = st.sampled_from(kinds) | st.integers(0, 10**6)
    offset = st.sampled_from([0, 1, 4096, *(n for n in kinds if n > 2**20 and n >= 0)])
    # A call starts where the previous one ended; occasionally the clock is set back between them.
    pause = st.sampled_from([0, 1, 50, 1000, TICKS // 10]) | st.sampled_from([0, -10, -TICKS])
    moved: list[tuple[str, int]] = []
    counts = {"metadata": 0, "sync": 0}
    ranks = []
    for rank in range(draw(st.integers(1, 3))):
        calls: list[Call] = []
        clock = TICKS * 2

        def called(function: str, *args: str, calls: list[Call] = calls) -> None:
            nonlocal clock
            clock = max(0, clock + draw(pause))
            start = clock
            clock += draw(st.sampled_from([0, 1, 400]))
            calls.append(Call(function, args, start=start, end=clock))

        for _ in range(draw(st.integers(1, 3))):
            path = draw(st.sampled_from(["/s/shared", f"/s/own.{rank}", "/s/\u00fc b"]))
            called("open", path, "66", "420")
            for _ in range(draw(st.integers(0, 4))):
                what = draw(st.sampled_from(["read", "write", "pread", "pwrite", "lseek", "fsync"]))
                if what == "fsync":
                    called(what, path)
                    counts["sync"] += 1
                elif what == "lseek":
                    called(what, path, str(draw(offset)), "0")
                    counts["metadata"] += 1
                else:
                    asked = draw(size)
                    place = (str(draw(offset)),) if what.startswith("p") else ()
                    called(what, path, "%p", str(asked), *place)
                    moved.append((what.removeprefix("p"), asked))
            called("close", path)
            counts["metadata"] += 2
        ranks.append(tuple(calls))
    return Program(layout, tuple(ranks), tuple(moved), counts["metadata"], counts["sync"])
