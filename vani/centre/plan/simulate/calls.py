"""Phases of a run, derived from the data calls in a store."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.centre.plan.schema.scenario import ScenarioPhase
from vani.centre.plan.simulate.rates import Floats, Ints
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.store.read import Store

_MOST_CALLS: Final = 100_000_000
_MOST_PHASES: Final = 2000
_GAP_SHARE: Final = 0.01
_LEAST_GAP_S: Final = 0.01
_NESTED: Final = 1 << 11
_STREAMS: Final = 1
"""Last layer of the file system: 0 is POSIX, 1 is stdio."""


@dataclass(frozen=True)
class DataCalls:
    """Reads and writes of data-set files. Arrays have shape (calls,), times are seconds since the start of the run."""

    app: str
    ranks: int
    start: Floats
    end: Floats
    reads: NDArray[np.bool_]
    bytes: Floats
    file: Ints
    metadata: int
    """Number of metadata calls to the file system."""


def data_calls(store: Store) -> DataCalls:
    """Read the data calls of a store.

    Raises
    ------
    StoreError
        The store is damaged.
    InputError
        The store has too many calls to simulate one by one.
    """
    manifest = store.manifest
    if manifest.records > _MOST_CALLS:
        raise InputError(
            f"contains {manifest.records:,} calls", where=store.path, todo="name the profile of that run instead"
        )
    files = store.files
    ordinary = np.array(files["file"].to_numpy()[files["class"].to_numpy() == 0])
    columns_of_batches: list[tuple[NDArray[np.int64], ...]] = []
    metadata = 0
    columns = ("layer", "kind", "flags", "file", "bytes", "start_ns", "duration_ns")
    for part in manifest.parts:
        for batch in store.batches(part, columns):
            layer, kind, flags = (
                batch.column(name).to_numpy(zero_copy_only=False) for name in ("layer", "kind", "flags")
            )
            own = (layer <= _STREAMS) & (flags & _NESTED == 0)
            metadata += int(np.count_nonzero(own & (kind == 2)))
            file, moved, start, took = (
                batch.column(name).fill_null(-1).to_numpy(zero_copy_only=False)
                for name in ("file", "bytes", "start_ns", "duration_ns")
            )
            rows = own & (kind <= 1) & (moved > 0) & np.isin(file, ordinary)
            columns_of_batches.append((start[rows], took[rows], kind[rows], moved[rows], file[rows]))
    begin = manifest.begin_ns
    start, took, kind, moved, file = (
        np.concatenate([np.zeros(0), *parts]) for parts in zip(*columns_of_batches, strict=True)
    )
    begun = (start - begin) / 1e9
    return DataCalls(
        manifest.app,
        manifest.ranks,
        begun,
        begun + took / 1e9,
        kind == 0,
        moved,
        file.astype(np.int64),
        metadata,
    )


def phases_of_calls(calls: DataCalls) -> list[ScenarioPhase]:
    """Split a run into phases at pauses longer than 1 % of the time from first to last call and than 10 ms.

    A phase that reads and writes reads first. Its bytes are spread evenly over all processes. Metadata calls are
    spread over the phases in proportion to their data calls.
    """
    if not len(calls.start):
        return []
    order = np.argsort(calls.start, kind="stable")
    start, reached = calls.start[order], np.maximum.accumulate(calls.end[order])
    gap = max(_LEAST_GAP_S, _GAP_SHARE * float(reached[-1] - start[0]))
    # With too many pauses, only the longest count.
    pauses = start[1:] - reached[:-1]
    if np.count_nonzero(pauses > gap) > _MOST_PHASES:
        gap = float(np.sort(pauses)[-_MOST_PHASES])
    cuts = np.concatenate([[0], np.flatnonzero(pauses > gap) + 1, [len(start)]])
    phases: list[ScenarioPhase] = []
    before = 0.0
    idle = np.concatenate([[0.0], np.maximum(pauses, 0.0)])
    for low, high in pairwise(cuts.tolist()):
        rows = order[low:high]
        # The time between the calls of a phase becomes computing before it.
        pause = max(0.0, float(start[low]) - before) + float(idle[low + 1 : high].sum())
        opens = calls.metadata * len(rows) / len(order)
        directions: tuple[tuple[Literal["read", "write"], NDArray[np.bool_]], ...] = (
            ("read", calls.reads[rows]),
            ("write", ~calls.reads[rows]),
        )
        for operation, of_kind in directions:
            chosen = rows[of_kind]
            if len(chosen):
                files = len(np.unique(calls.file[chosen]))
                phases.append(
                    ScenarioPhase(
                        operation=operation,
                        bytes=float(calls.bytes[chosen].sum()),
                        files=files,
                        opens=opens,
                        compute_s=pause,
                        # Phases with different numbers of files use different files.
                        file_set=f"{files} files",
                    )
                )
                pause = opens = 0.0
        before = float(reached[high - 1])
    return phases
