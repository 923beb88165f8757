"""Many calls on few places in few files, drawn with numpy, so that each case in a kernel occurs often."""

from __future__ import annotations

from typing import Any

import numpy as np
from call_tables import FUNCTION_NAMES, InventedTrace, call, read, write

from vani.analyzers.int_table import NO_VALUE, pack
from vani.analyzers.workload import BUCKETS, MOMENTS, Context, Ends, SurveyFindings, Workload
from vani.calls import FileClass, Flag, Layer

__all__ = ["dense_trace", "findings_of"]

FILES, PLACE = 3, 100
Ints = np.ndarray


def dense_trace(seed: int, rows_per_batch: int, *, most: int = 200) -> InventedTrace:
    """One to three processes with different habits, so that some streams stay in order and others do not."""
    chance = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    ranks = int(chance.integers(1, 4))
    for rank in range(ranks):
        now, habit = 0, chance.dirichlet(np.full(6, 0.5))
        before = np.zeros((FILES, 2, 2), np.int64)
        for _ in range(int(chance.integers(0, most))):
            now += int(chance.integers(0, 3))
            here = {"rank": rank, "at": now, "lasts": int(chance.integers(0, 4))}
            here["layer"] = int(chance.choice([Layer.POSIX, Layer.POSIX, Layer.STDIO]))
            file = int(chance.integers(0, FILES))
            what = chance.random()
            if what < 0.04:
                rows.append(call(file=file, flags=Flag.OPEN, **here))
            elif what < 0.12:
                offset = int(chance.choice([-1, 0, 3 * PLACE]))
                rows.append(call(file=file, flags=Flag.SEEK, offset=None if offset < 0 else offset, **here))
            elif what < 0.16:
                flags = int(chance.choice([Flag.STAT, Flag.RESIZE, Flag.NESTED]))
                named = None if chance.random() < 0.1 else file
                rows.append(call(file=named, flags=flags, offset=2 * PLACE, **here))
            else:
                rows.append(_moved(chance, file, before[file], habit, here))
    classes = [FileClass.DATASET] * FILES
    return InventedTrace(rows, classes, ranks=ranks, rows_per_batch=rows_per_batch)


def _moved(
    chance: np.random.Generator, file: int, before: Ints, habit: Ints, here: dict[str, Any]
) -> dict[str, Any]:
    """A read or write. `before` has, for both directions, the start and length of the last one."""
    writes = int(chance.random() < 0.4)
    at, size = before[writes].tolist()
    at = (
        at + size,
        at + 2 * PLACE,
        at - PLACE,
        int(chance.integers(0, 7)) * PLACE,
        at + int(chance.integers(0, 3)) * PLACE // 2,
        at,
    )[int(chance.choice(6, p=habit))]
    at, size = max(0, at), int(chance.choice([0, PLACE // 2, PLACE, PLACE, 2 * PLACE]))
    before[writes] = at, size
    append = Flag.APPEND if writes and chance.random() < 0.1 else 0
    place = None if chance.random() < 0.05 else at
    known = None if chance.random() < 0.05 else size
    nowhere = None if chance.random() < 0.02 else file
    do = write if writes else read
    return do(nowhere, place, known, flags=append, follows=bool(chance.random() < 0.6), **here)


def findings_of(trace: InventedTrace, seed: int) -> tuple[Context, SurveyFindings]:
    """Possible findings about its phases and the extent of its files."""
    chance = np.random.default_rng([seed, 1])
    files, span = len(trace.classes), max((r["start_ns"] + r["duration_ns"] for r in trace.rows), default=0)
    shift = int(chance.choice([0, 5]))
    workload = Workload(
        paths=trace.paths(),
        file_class=np.array([int(c) for c in trace.classes], np.int8),
        apps=("one",),
        app_of_trace=(0,),
        process_base=(0,),
        processes=trace.ranks,
        shift_ns=(shift,),
        span_ns=span + shift,
        known_sizes=np.full(files, NO_VALUE),
        final_name=np.arange(files),
        functions=("(unknown)", *FUNCTION_NAMES),
    )
    codes = np.append(np.arange(1, len(FUNCTION_NAMES) + 1), 0).astype(np.int32)
    starts = np.unique(chance.integers(0, span + 2, 3))
    level, bucket = int(chance.choice([0, 0, 2])), max(1, (span + 6) // int(chance.choice([20, BUCKETS])))
    file = np.repeat(np.arange(files), 8)
    moment = chance.integers(0, min(span // bucket, BUCKETS) + 1, len(file)) >> level
    keys = np.unique(pack((file, moment), MOMENTS))
    ends = Ends(
        known=chance.random(files) < 0.7,
        since=chance.choice([0, 0, span // 3], files),
        always=np.zeros(files, np.bool_),
        keys=keys,
        reach=chance.integers(0, 8, len(keys)) * PLACE,
        bucket_ns=bucket,
        level=level,
    )
    listed = np.append(np.where(chance.random(files) < 0.6, np.arange(files), -1), -1).astype(np.int32)
    findings = SurveyFindings(
        starts,
        np.zeros(len(starts), np.int64),
        np.array([0, len(starts)]),
        ends,
        linked=chance.random(files) < 0.5,
        linked_by_open=np.zeros(files, np.bool_),
        written_by_open=np.zeros(files, np.bool_),
        listed_as=None if chance.random() < 0.3 else listed,
        linked_calls=int(chance.choice([0, 1 << 30])),
    )
    return Context(workload, 0, np.arange(files), codes), findings
