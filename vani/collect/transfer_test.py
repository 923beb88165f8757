"""The rate at which one node writes and reads in a folder: a short test, bounded in bytes and time.

Several streams write their own files at the same time and read them again. The files are unlinked before they are
written, so that the file system frees them however the process ends. No data is read from this node's memory: the
streams use direct I/O, or, on file systems without it, flush their data and ask the kernel to drop it from the cache.
Caches of servers or of a virtual machine's host cannot be excluded.
"""

import contextlib
import errno
import mmap
import os
import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.collect.mounts import space_of
from vani.errors import InputError
from vani.units import GiB, MiB, format_bytes, lfs_size

MIN_BYTES: Final = 16 * MiB
MAX_BYTES: Final = 256 * GiB
LIMIT_S: Final = 60.0
"""Seconds after which a direction is cut short."""
FREE_TIMES: Final = 10
"""Required ratio of free space to written bytes."""

_TRANSFER: Final = 4 * MiB
# A Lustre, GPFS or NFS client reaches its full rate only with several streams.
_STREAMS: Final = 8
_PER_STREAM: Final = 64 * MiB
# Data that waits in memory when time is up must still be written.
_FLUSH_EVERY: Final = 256 * MiB
# After a signal, a stream ends after its current transfer; do not wait longer for a server that hangs.
_WAIT_S: Final = 5.0
_NO_DIRECT: Final = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class Measurement:
    """Bytes per second of one node, and how they were measured; `notes` describe what disturbed the test."""

    folder: Path
    write: float | None
    read: float | None
    method: str
    notes: tuple[str, ...] = ()


@dataclass
class _Stream:
    file: int
    buffer: mmap.mmap
    written: int = 0
    moved: int = 0
    failed: OSError | None = None


def measure(folder: Path, size: int, *, limit_s: float = LIMIT_S) -> Measurement:
    """Write `size` bytes in `folder`, read them again, and measure both rates.

    Raises
    ------
    InputError
        The folder cannot be written, its free space is unknown or less than ten times the size, or it ran full.
    """
    check_room(folder, size)
    count = max(1, min(_STREAMS, size // _PER_STREAM))
    share = size // count // _TRANSFER * _TRANSFER
    streams: list[_Stream] = []
    try:
        is_direct = True
        for number in range(count):
            file, direct = _open_nameless(folder, number)
            buffer = mmap.mmap(-1, _TRANSFER)
            streams.append(_Stream(file, buffer))
            # Random data, because some file systems compress.
            buffer.write(os.urandom(_TRANSFER))
            is_direct = is_direct and direct
        write, cut_short = _timed(streams, share, limit_s, writes=True)
        for stream in streams:
            stream.written, stream.moved = stream.moved, 0
            if not is_direct:
                os.posix_fadvise(stream.file, 0, 0, os.POSIX_FADV_DONTNEED)
        read, read_cut = _timed(streams, share, limit_s, writes=False)
        total = sum(stream.written for stream in streams)
    except OSError as error:
        raise failed_test(folder, error) from error
    finally:
        for stream in streams:
            with contextlib.suppress(OSError):
                os.close(stream.file)
    how = "direct I/O" if is_direct else "buffered, flushed at the end, dropped from the cache before reading"
    streams_text = "1 stream" if count == 1 else f"{count} streams with separate files"
    method = (f"{lfs_size(total)}iB by {streams_text}, transfers of {lfs_size(_TRANSFER)}iB, {how}; one node, once")
    cut = [name for name, is_cut in (("writing", cut_short), ("reading", read_cut)) if is_cut]
    notes = (f"{' and '.join(cut)} was cut short after {limit_s:g} s",) if cut else ()
    return Measurement(folder, write, read, method, notes)


def check_room(folder: Path, size: int) -> None:
    """Refuse a folder whose file system has free space of less than ten times the size.

    Raises
    ------
    InputError
        It has less, its free space is unknown, or the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError("no such folder", where=folder, todo="name a folder that can be written")
    space = space_of(str(folder))
    if space is None:
        raise InputError("its free space is not known", where=folder, todo="name a folder on another file system")
    if space[1] < FREE_TIMES * size:
        raise InputError(
            f"{format_bytes(space[1])} are free: the test writes {format_bytes(size)}, and needs "
            f"{FREE_TIMES} times as much free space",
            where=folder,
            todo="name a smaller --size, or another folder",
        )


def failed_test(folder: Path, error: OSError) -> InputError:
    """The error for a test that could not write or read its files."""
    return InputError(
        f"the test failed ({error.strerror or error}); its files are removed",
        where=folder,
        todo="name a folder that you may write, with room and quota, or a smaller --size",
    )


def _open_nameless(folder: Path, number: int) -> tuple[int, bool]:
    """Open a new file, for direct I/O if possible, and unlink it; also returns whether I/O is direct."""
    # Other nodes may test the same folder.
    path = folder / f".vani-measure-{secrets.token_hex(8)}-{number}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            return os.open(path, flags | os.O_DIRECT, 0o600), True
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            # Some file systems create the file before they refuse.
            path.unlink(missing_ok=True)
            return os.open(path, flags, 0o600), False
    finally:
        # Even if a signal comes first.
        path.unlink(missing_ok=True)


def _timed(streams: list[_Stream], share: int, limit_s: float, *, writes: bool) -> tuple[float | None, bool]:
    """Let all streams move their share simultaneously: total bytes per second, and whether time ran out."""
    stop, begun = threading.Event(), time.monotonic()
    deadline = begun + limit_s

    def run(stream: _Stream) -> None:
        view = memoryview(stream.buffer)
        try:
            limit = share if writes else stream.written
            while stream.moved < limit and not stop.is_set() and time.monotonic() < deadline:
                data, place = view[: limit - stream.moved], stream.moved
                done = os.pwrite(stream.file, data, place) if writes else os.preadv(stream.file, [data], place)
                if not done:
                    break
                stream.moved += done
                if writes and stream.moved % _FLUSH_EVERY < done:
                    os.fdatasync(stream.file)
            if writes:
                os.fsync(stream.file)
        except OSError as error:
            stream.failed = error
            stop.set()

    threads = [threading.Thread(target=run, args=(stream,), daemon=True, name="measure") for stream in streams]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            # On some systems, a join without a timeout would not let a signal through.
            while thread.is_alive():
                thread.join(0.1)
    finally:
        stop.set()
        last = time.monotonic() + _WAIT_S
        for thread in threads:
            if thread.is_alive():
                thread.join(max(0.0, last - time.monotonic()))
    spent = time.monotonic() - begun
    for stream in streams:
        if stream.failed is not None:
            raise stream.failed
    moved = sum(stream.moved for stream in streams)
    wanted = sum(share if writes else stream.written for stream in streams)
    return (moved / spent if moved else None), moved < wanted
