"""A file system that is slow on purpose: every operation waits, and the data rate is limited.

    python slow_file_system.py MOUNT BACKING [LATENCY_S] [BYTES_PER_S]

It shows the folder BACKING at MOUNT (FUSE, needs `mfusepy` and libfuse3) until it is unmounted with
`fusermount3 -u MOUNT`. Nothing is cached: each call of a program arrives here, as on a loaded parallel file
system whose clients must contact the servers.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mfusepy


def late(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an operation to wait for the latency first."""

    @functools.wraps(method)
    def waiting(self: SlowFolder, *arguments: Any) -> Any:
        self.arrive()
        return method(self, *arguments)

    return waiting


def passed_on(call: Callable[..., None], paths: int = 1) -> Callable[..., Any]:
    """An operation that is a call of the system, with its first `paths` arguments below the folder."""

    @late
    def operation(self: SlowFolder, *arguments: Any) -> int:
        call(*map(self.place, arguments[:paths]), *arguments[paths:])
        return 0

    return operation


class SlowFolder(mfusepy.Operations):  # type: ignore[misc]
    """Passes every operation through to a folder, with a delay."""

    use_ns = True

    def __init__(self, backing: Path, latency_s: float, bytes_per_s: float) -> None:
        self.backing, self.latency_s, self.bytes_per_s = backing, latency_s, bytes_per_s
        # A single channel to the servers: the data of all processes passes one after another.
        self.channel = threading.Lock()

    def arrive(self) -> None:
        time.sleep(self.latency_s)

    def place(self, path: str) -> str:
        return f"{self.backing}{path}"

    def carry(self, size: int) -> None:
        with self.channel:
            time.sleep(size / self.bytes_per_s)

    @late
    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        status = os.lstat(self.place(path))
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_ino", "st_blocks")
        times = {f"st_{kind}time": getattr(status, f"st_{kind}time_ns") for kind in "amc"}
        return {name: getattr(status, name) for name in names} | times

    @late
    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self.place(path))]

    @late
    def access(self, path: str, amode: int) -> int:
        if not os.access(self.place(path), amode):
            raise OSError(errno.EACCES, "")
        return 0

    @late
    def open(self, path: str, flags: int) -> int:
        return os.open(self.place(path), flags & ~os.O_APPEND)

    @late
    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self.place(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

    @late
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        data = os.pread(fh, size, offset)
        self.carry(len(data))
        return data

    @late
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self.carry(len(data))
        return os.pwrite(fh, data, offset)

    @late
    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self.place(path) if fh is None else fh, length)
        return 0

    @late
    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    @late
    def flush(self, path: str, fh: int) -> int:
        return 0

    @late
    def fsync(self, path: str, datasync: int, fh: int) -> int:
        os.fsync(fh)
        return 0

    mkdir, rmdir, unlink = passed_on(os.mkdir), passed_on(os.rmdir), passed_on(os.unlink)
    rename, chmod, chown = passed_on(os.rename, paths=2), passed_on(os.chmod), passed_on(os.chown)

    @late
    def utimens(self, path: str, times: tuple[int, int]) -> int:
        os.utime(self.place(path), ns=times)
        return 0

    @late
    def symlink(self, target: str, source: str) -> int:
        os.symlink(source, self.place(target))
        return 0

    @late
    def readlink(self, path: str) -> str:
        return os.readlink(self.place(path))

    @late
    def statfs(self, path: str) -> dict[str, int]:
        status = os.statvfs(self.place(path))
        names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_namemax")
        return {name: getattr(status, name) for name in names}


def main(mount: str, backing: str, latency_s: str = "0.0005", bytes_per_s: str = "50e6") -> None:
    folder = SlowFolder(Path(backing).resolve(), float(latency_s), float(bytes_per_s))
    mfusepy.FUSE(folder, mount, foreground=True, direct_io=True, attr_timeout=0, entry_timeout=0, max_threads=16)


if __name__ == "__main__":
    main(*sys.argv[1:])
