"""Perfetto's own format: a protobuf of packets, with a begin and an end packet for each call.

Source: perfetto's trace_packet.proto, track_event.proto, interned_data.proto and track_descriptor.proto. Numbers
are varints of a fixed width, longer than necessary, so that the bytes of many packets are columns of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.render.events.slices import Lane, Names, Process, Slices

Bytes = NDArray[np.uint8]

_PACKET, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 1, 8, 10, 11, 12, 13, 60
"""Field numbers of a packet; the first is the trace's field for packets."""
_CATEGORIES, _NAMES, _ARGUMENTS, _STRINGS = 1, 2, 3, 29
"""Field numbers of interned data."""
_CLEARED, _NEEDS_STATE = 1, 2
_BEGIN, _END = 1, 2
_FILE, _BYTES, _OFFSET = 1, 2, 3
_AT_ONCE: Final = 1 << 15
"""Number of packets whose positions are in memory at a time."""
_WORDS_AT_ONCE: Final = 10_000


class PerfettoEvents:
    """Writes events as packets.

    Parameters
    ----------
    generator
        Name and version of the writing program; ignored, since the format has no field for it.
    """

    def __init__(self, generator: str) -> None:
        del generator
        self._base = 0
        self._next = 0

    def begin(self, processes: Iterable[Process]) -> bytes:
        """The beginning of the output, with the names of the processes."""
        packets = [_packet(_varint(_FLAGS, _CLEARED))]
        for process in processes:
            described = _varint(1, process.number) + _text(6, process.name)
            track = _varint(1, _process_uuid(process.number)) + _bytes(3, described)
            packets.append(_packet(_bytes(_DESCRIPTOR, track)))
        return b"".join(packets)

    def names(self, names: Names) -> bytes:
        """Intern the names of a trace; names of earlier traces keep their numbers."""
        self._base = self._next
        packets, number = [], self._base
        for field, words in (
            (_CATEGORIES, [*names.layers, *names.kinds]),
            (_ARGUMENTS, ["file", "bytes", "offset"]),
            (_NAMES, names.functions),
            (_STRINGS, names.files),
        ):
            # Categories and arguments are the same in all traces.
            first = 1 if field in (_CATEGORIES, _ARGUMENTS) else self._base + 1
            for at in range(0, len(words), _WORDS_AT_ONCE):
                some = words[at : at + _WORDS_AT_ONCE]
                interned = b"".join(
                    _bytes(field, _varint(1, first + at + n) + _text(2, word)) for n, word in enumerate(some)
                )
                packets.append(_packet(_varint(_FLAGS, _NEEDS_STATE) + _bytes(_INTERNED, interned)))
            number = max(number, first + len(words))
        self._next = number
        self._layers = len(names.layers)
        return b"".join(packets)

    def tracks(self, new: Mapping[Lane, int]) -> bytes:
        """The names of threads."""
        packets = []
        for place, track in new.items():
            if place.lane:
                name = f"thread {place.thread}, overlapping {place.lane}"
                described = _varint(5, _process_uuid(place.process)) + _text(2, name)
            else:
                # Differs from every process number, which is the number of the process's first thread.
                thread = _varint(1, place.process) + _varint(2, (1 << 24) + track)
                described = _bytes(4, thread + _text(5, f"thread {place.thread}"))
            packets.append(_packet(_bytes(_DESCRIPTOR, _varint(1, (track + 1) << 1) + described)))
        return b"".join(packets)

    def events(self, slices: Slices, process: Mapping[int, Process], shift_ns: int) -> bytes:
        """Two packets for each call; `shift_ns` is added to its time."""
        del process
        return b"".join(
            self._some(slices, slice(at, at + _AT_ONCE), shift_ns) for at in range(0, len(slices.edges), _AT_ONCE)
        )

    def end(self) -> bytes:
        """The end of the output."""
        return b""

    def _some(self, slices: Slices, some: slice, shift_ns: int) -> bytes:
        calls, is_begin = slices.edges[some], slices.is_begin[some]
        columns = slices.columns
        start = np.asarray(columns["start_ns"])[calls]
        length = np.maximum(np.asarray(columns["duration_ns"])[calls], 0)
        time = start + np.where(is_begin, 0, length) + shift_ns
        begun = calls[is_begin]
        words = [
            np.asarray(columns["func"])[begun].astype(np.int64) + self._base + 1,
            np.asarray(columns["layer"])[begun].astype(np.int64) + 1,
            np.asarray(columns["kind"])[begun].astype(np.int64) + self._layers + 1,
        ]
        where = np.flatnonzero(is_begin)
        event = [
            (None, _field(9, np.where(is_begin, _BEGIN, _END), 1)),
            (None, _field(11, (slices.track[calls] + 1) << 1)),
            (where, _field(10, words[0])),
            (where, _field(3, words[1], 1)),
            (where, _field(3, words[2], 1)),
        ]
        for name, column, field, first in (
            (_FILE, "file", 17, self._base + 1),
            (_BYTES, "bytes", 4, 0),
            (_OFFSET, "offset", 4, 0),
        ):
            known, values = _known(columns[column], begun)
            value = _field(field, values + first)
            annotation = np.hstack([_constant(_varint(1, name), len(values)), value])
            event.append((where[known], np.hstack([_length(4, np.full(len(values), annotation.shape[1])), annotation])))
        lengths = _lengths(event, len(calls))
        packet = [
            (None, _field(_TIMESTAMP, time)),
            (None, _constant(_varint(_SEQUENCE, 1) + _varint(_FLAGS, _NEEDS_STATE), len(calls))),
            (None, _length(_TRACK_EVENT, lengths)),
            *event,
        ]
        lengths = _lengths(packet, len(calls))
        return _joined([(None, _length(_PACKET, lengths)), *packet], len(calls))


Part = tuple[NDArray[np.int64] | None, Bytes]
"""Bytes of some rows or of all, shape (rows, bytes)."""


def _known(column: pa.Array, calls: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    taken = column.take(pa.array(calls))
    known = np.asarray(taken.is_valid())
    return known, np.asarray(taken.drop_null(), dtype=np.int64)


def _lengths(parts: Sequence[Part], rows: int) -> NDArray[np.int64]:
    lengths = np.zeros(rows, dtype=np.int64)
    for some, content in parts:
        lengths[slice(None) if some is None else some] += content.shape[1]
    return lengths


def _joined(parts: Sequence[Part], rows: int) -> bytes:
    """The parts of each row concatenated, row after row."""
    place = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(_lengths(parts, rows), out=place[1:])
    joined = np.empty(int(place[-1]), dtype=np.uint8)
    place = place[:-1]
    for some, content in parts:
        rows_of_part = slice(None) if some is None else some
        joined[place[rows_of_part][:, None] + np.arange(content.shape[1])] = content
        place[rows_of_part] += content.shape[1]
    return joined.tobytes()


def _field(number: int, values: NDArray[np.int64], width: int | None = None) -> Bytes:
    """A field of integers, as wide as the largest one needs."""
    return np.hstack([_constant(_number(number << 3), len(values)), _padded(values, width)])


def _length(number: int, lengths: NDArray[np.int64]) -> Bytes:
    return np.hstack([_constant(_number(number << 3 | 2), len(lengths)), _padded(lengths)])


def _padded(values: NDArray[np.int64], width: int | None = None) -> Bytes:
    unsigned = values.astype(np.uint64)
    if width is None:
        bits = int(unsigned.max()).bit_length() if len(unsigned) else 1
        width = max(1, -(-bits // 7))
    groups = np.stack([(unsigned >> np.uint64(7 * n)).astype(np.uint8) & 0x7F for n in range(width)], axis=1)
    groups[:, :-1] |= 0x80
    return groups


def _constant(content: bytes, rows: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(content, dtype=np.uint8), (rows, len(content)))


def _process_uuid(number: int) -> int:
    # Odd numbers; those of threads are even.
    return number << 1 | 1




def _packet(content: bytes) -> bytes:
    return _bytes(_PACKET, _varint(_SEQUENCE, 1) + content)


def _bytes(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "backslashreplace"))


def _varint(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _number(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
