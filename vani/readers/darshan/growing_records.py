"""Records that end in arrays, of modules without counters: Lustre layouts, DXT calls, and heat maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.heat_of_calls import HeatOfCalls
from vani.readers.darshan.log import Log
from vani.readers.darshan.record_ends import damaged_log

Columns = dict[str, NDArray[Any]]

_COMPONENT: Final = ("STRIPE_SIZE", "STRIPE_COUNT", "STRIPE_PATTERN", "FLAGS", "EXT_START", "EXT_END", "MIRROR_ID")
_WORDS: Final = 9
"""Words of a component: its numbers, and a pool name of 16 bytes."""
_HOST: Final = slice(24, 88)
MOST_CALLS: Final = 1 << 22
"""Maximum number of DXT calls that are read individually: a profile of this many takes about 1.5 GB."""
_AT_ONCE: Final = 1 << 17
_MOST_CELLS: Final = 1 << 26
"""Maximum number of cells of a heat map in each direction: 512 MiB."""


def _whole(log: Log, module: str) -> Iterator[tuple[bytes, bytes]]:
    """Head and arrays of each record, each as one piece."""
    head: bytes | None = None
    arrays: list[bytes] = []
    for is_head, part in log.parts(module):
        if not is_head:
            arrays.append(part)
            continue
        if head is not None:
            yield head, b"".join(arrays)
        head, arrays = part, []
    if head is not None:
        yield head, b"".join(arrays)


def layouts_of(log: Log) -> tuple[Columns, Columns]:
    """Layouts and targets of files on Lustre, in the form of `Records.layouts` and `Records.targets`."""
    oldest = log.version_of("LUSTRE") == 1
    rows: list[list[int]] = []
    files: list[int] = []
    of_system: list[int] = []
    on_targets: list[tuple[int, NDArray[np.int64]]] = []
    for head, arrays in _whole(log, "LUSTRE"):
        file, _, *numbers = log.numbers(head).tolist()
        words = log.numbers(arrays)
        if oldest:
            osts, _, _, size, count = numbers
            parts, targets = [[size, count, -1, -1, 0, -1, -1]], words
        else:
            behind, osts = _WORDS * numbers[0], -1
            parts = words[:behind].reshape(-1, _WORDS)[:, : len(_COMPONENT)].tolist()
            targets = words[behind:]
            # While a program runs, unused components have a size of -1.
            parts = parts[: next((at for at, part in enumerate(parts) if part[0] == -1), len(parts))]
            count = sum(part[1] for part in parts)
        if count > 0:
            on_targets.append((file % (1 << 64), np.unique(targets[:count])))
        rows += parts
        files += [file % (1 << 64)] * len(parts)
        of_system += [osts] * len(parts)
    table = np.array(rows, np.int64).reshape(-1, len(_COMPONENT))
    layouts: Columns = {f"LUSTRE_COMP_{name}": table[:, at] for at, name in enumerate(_COMPONENT)}
    layouts |= {"id": np.array(files, np.uint64), "OSTS": np.array(of_system, np.int64)}
    ids = np.array([file for file, _ in on_targets], np.uint64)
    return layouts, {
        "id": np.repeat(ids, [len(some) for _, some in on_targets]),
        "target": np.concatenate([np.empty(0, np.int64), *(some for _, some in on_targets)]),
    }


def calls_of(log: Log, module: str) -> tuple[Columns | HeatOfCalls, list[str]]:
    """Calls and hosts of a DXT module, in the form of `Records.calls` and `Records.hosts`.

    If there are more than `MOST_CALLS` calls, returns only the bytes that each process moved over time, and no hosts.
    """
    version = log.version_of(module)
    # Later versions append the thread number.
    words = 5 if version > (1 if module == "DXT_POSIX" else 2) else 4
    heads: list[bytes] = []
    batch = _Batch(words)
    heat: HeatOfCalls | None = None
    for is_head, part in log.parts(module):
        if is_head:
            # The numbers in the host name's bytes have no meaning.
            _, rank, *_, writes, _ = log.numbers(part).tolist()
            batch.begin(rank, writes)
            if heat is None:
                heads.append(part)
        else:
            batch.append(part)
        if heat is None and batch.calls + len(heads) > MOST_CALLS:
            heat, heads = HeatOfCalls(log.job.runtime_s), []
        if heat is not None and batch.calls + len(batch.ranks) >= _AT_ONCE:
            heat.add(batch.ranks, batch.counts, batch.table(log))
            batch.forget()
    if heat is not None:
        heat.add(batch.ranks, batch.counts, batch.table(log))
        return heat, []
    facts = [log.numbers(head) for head in heads]
    table = np.stack(facts) if facts else np.empty((0, 13), np.int64)
    offset, length, start, end = (np.ascontiguousarray(batch.table(log)[:, at]) for at in range(4))
    if (module, version) == ("DXT_MPIIO", 1):
        offset = np.full(len(offset), -1)
    return {
        "id": table[:, 0].astype(np.int64).view(np.uint64),
        "rank": table[:, 1],
        "writes": table[:, 11],
        "reads": table[:, 12],
        "offset": offset,
        "length": length,
        "start": start.view(np.float64),
        "end": end.view(np.float64),
    }, [head[_HOST].split(b"\0", 1)[0].decode(errors="replace") for head in heads]


class _Batch:
    """Calls of some records; the last record may continue."""

    def __init__(self, words: int) -> None:
        self._size, self._words = 8 * words, words
        self.ranks: list[int] = []
        self.counts: list[tuple[int, int]] = []
        """Per record: number of writing calls, and of reading calls."""
        self.calls = 0
        self._parts: list[bytes] = []
        self._writes = 0
        self._cut = b""

    def begin(self, rank: int, writes: int) -> None:
        """Begin a record with `writes` writing calls; its other calls read."""
        self.ranks.append(rank)
        self.counts.append((0, 0))
        self._writes = writes

    def append(self, part: bytes) -> None:
        """Add more of the record's bytes; the last call may be incomplete."""
        part = self._cut + part
        count = len(part) // self._size
        self._cut = part[count * self._size :]
        self._parts.append(part[: count * self._size])
        writes = min(count, self._writes)
        self._writes -= writes
        wrote, read = self.counts[-1]
        self.counts[-1] = (wrote + writes, read + count - writes)
        self.calls += count

    def table(self, log: Log) -> NDArray[Any]:
        """The complete calls, shape (calls, words)."""
        return log.numbers(b"".join(self._parts)).reshape(-1, self._words)

    def forget(self) -> None:
        """Drop the calls so far, and continue with the last record."""
        self.ranks, self.counts, self.calls, self._parts = self.ranks[-1:], [(0, 0)], 0, []


def heat_of(log: Log) -> Columns:
    """Bytes in each bin, in the form of `Records.heat`: one row per record, padded with 0."""
    ids, ranks, widths = [], [], []
    read: list[NDArray[np.int64]] = []
    written: list[NDArray[np.int64]] = []
    first_bins, first_width = 0, 0.0
    for head, arrays in _whole(log, "HEATMAP"):
        file, rank, _, bins, *_ = log.numbers(head).tolist()
        width = float(log.numbers(head, "f8")[2])
        first_bins, first_width = first_bins or bins, first_width or width
        words = log.numbers(arrays)
        # Processes of Darshan 3.4.0 to 3.4.3 may have one bin more than the others, which `darshan-util` drops.
        shown = bins - 1 if width == first_width and bins == first_bins + 1 else bins
        ids.append(file % (1 << 64))
        ranks.append(rank)
        widths.append(width)
        written.append(words[:shown])
        read.append(words[bins : bins + shown])
    longest = max((len(some) for some in read), default=0)
    if len(ids) * longest > _MOST_CELLS:
        raise damaged_log(
            log.path, f"HEATMAP has {len(ids):,} records, and one of them has {longest:,} bins: more than can be"
        )
    heat: Columns = {
        "id": np.array(ids, np.uint64),
        "rank": np.array(ranks, np.int64),
        "width": np.array(widths, np.float64),
    }
    for name, side in (("read", read), ("write", written)):
        heat[name] = np.zeros((len(side), longest), np.int64)
        for row, some in zip(heat[name], side, strict=True):
            row[: len(some)] = some
    return heat
