"""A stand-in for a striped parallel file system, on which programs wait as in `vani.demo.striped_model`.

    python striped_file_system.py MOUNT BACKING MACHINE [SEED]

It shows the folder BACKING at MOUNT (FUSE, needs `mfusepy` and libfuse3) until it is unmounted with `fusermount3 -u
MOUNT`. MACHINE is a name for `machine_of`. `lfs` in this folder sets and shows layouts, which are lost when the
file system ends. It makes no claim about Lustre.

Each process of an MPI program is a node of its own, identified by its rank (PMI_RANK), or by its node in a Slurm job
(SLURM_NODEID). All other processes share one node. A job's nodes start with empty caches, as if an epilog had dropped
them. With `direct_io`, each call of a program arrives unchanged, in successive pieces of at most 1 MiB.

The kernel caches names and attributes, because nothing else changes the folder.
"""

import errno
import json
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import mfusepy
from slow_file_system import SlowFolder

from vani.demo.striped_model import File, Layout, Machine, Storage, layout_of, machine_of, words_of

ATTRIBUTE = "user.layout"
"""Attribute with options of `lfs setstripe`, for new files in a folder or for a file that is new and empty."""
TARGETS = "user.targets"
"""Attribute of the mount with the bytes written to each target and its seconds of outstanding work."""


class StripedFolder(SlowFolder):
    """Passes every operation through to a folder. Each ends at the time that the model gives."""

    def __init__(self, backing: Path, machine: Machine, seed: int) -> None:
        super().__init__(backing, 0.0, 1.0)
        self.machine, self.storage = machine, Storage(machine, seed)
        self.plain = layout_of([], machine)
        self.files: dict[int, File] = {}
        self.folders: dict[int, Layout] = {}
        self.opened: dict[int, File] = {}
        self.nodes: dict[int, int] = {}
        self.numbers: dict[tuple[bytes, ...], int] = {}
        self.one_at_a_time = threading.Lock()

    def arrive(self, objects: int = 1) -> None:
        with self.one_at_a_time:
            done = self.storage.metadata(objects)
        wait_until(done)

    def node(self) -> int:
        """The node of the calling process."""
        pid = mfusepy.fuse_get_context()[2]
        if pid not in self.nodes:
            try:
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                variables = []
            ranks = [word for word in variables if word.startswith((b"PMI_RANK=", b"SLURM_JOB_ID=", b"SLURM_NODEID="))]
            self.nodes[pid] = self.numbers.setdefault(tuple(sorted(ranks)), len(self.numbers))
        return self.nodes[pid]

    def file(self, number: int) -> File:
        """The file of an inode. A file that existed before gets the plain layout."""
        with self.one_at_a_time:
            if number not in self.files:
                self.files[number] = self.storage.create(self.plain)
            return self.files[number]

    def parent(self, path: str) -> Layout:
        return self.folders.get(os.lstat(os.path.dirname(self.place(path))).st_ino, self.plain)

    def open(self, path: str, flags: int) -> int:
        self.arrive()
        handle = os.open(self.place(path), flags & ~os.O_APPEND)
        self.opened[handle] = self.file(os.fstat(handle).st_ino)
        return handle

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        with self.one_at_a_time:
            file = self.storage.create(self.parent(path))
        self.arrive(file.objects)
        handle = os.open(self.place(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)
        self.opened[handle] = self.files.setdefault(os.fstat(handle).st_ino, file)
        return handle

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        data = os.pread(fh, size, offset)
        node, end = self.node(), os.fstat(fh).st_size
        with self.one_at_a_time:
            done = self.storage.read(node, self.opened[fh], offset, size, end)
        wait_until(done)
        return data

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        node = self.node()
        with self.one_at_a_time:
            # The copy below takes the time that the model counts for the node's memory.
            self.storage.write(node, self.opened[fh], offset, len(data))
        return os.pwrite(fh, data, offset)

    def flush(self, path: str, fh: int) -> int:
        # FUSE calls a close "flush".
        wait_until(self.storage.close(self.node(), self.opened[fh]))
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        node = self.node()
        with self.one_at_a_time:
            done = self.storage.flush(node, self.opened[fh])
        wait_until(done)
        return 0

    def release(self, path: str, fh: int) -> int:
        del self.opened[fh]
        os.close(fh)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        super().mkdir(path, mode)
        if (layout := self.parent(path)) is not self.plain:
            self.folders[os.lstat(self.place(path)).st_ino] = layout
        return 0

    def rmdir(self, path: str) -> int:
        number = os.lstat(self.place(path)).st_ino
        super().rmdir(path)
        self.folders.pop(number, None)
        return 0

    def unlink(self, path: str) -> int:
        state = os.lstat(self.place(path))
        file = self.files.get(state.st_ino)
        self.arrive(file.objects if file else 1)
        os.unlink(self.place(path))
        if state.st_nlink == 1:
            self.files.pop(state.st_ino, None)
        return 0

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        if name != ATTRIBUTE:
            raise OSError(errno.EOPNOTSUPP, "")
        try:
            layout = layout_of(value.decode().split(), self.machine)
        except ValueError:
            raise OSError(errno.ERANGE, "") from None
        number = os.lstat(self.place(path)).st_ino
        if os.path.isdir(self.place(path)):
            self.folders[number] = layout
            return 0
        # As on Lustre, another process that opens the file in the meantime gives it the layout of its folder.
        file = self.file(number)
        with self.one_at_a_time:
            if file.written or sum(other is file for other in self.opened.values()) > 1:
                raise OSError(errno.EEXIST, "")
            created = self.storage.create(layout)
            file.layout, file.first = created.layout, created.first
        self.arrive(file.objects)
        return 0

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        if (path, name) == ("/", TARGETS):
            with self.one_at_a_time:
                return json.dumps([self.storage.stored, self.storage.busy_s()]).encode()
        number = os.lstat(self.place(path)).st_ino
        file = self.files.get(number)
        layout = self.folders.get(number)
        if file:
            parts = zip(file.layout, file.first, strict=True)
            layout = tuple(replace(part, offset=first) for part, first in parts)
        if name != ATTRIBUTE or layout is None:
            raise OSError(errno.ENODATA, "")
        return " ".join(words_of(layout)).encode()

    def removexattr(self, path: str, name: str) -> int:
        if name == ATTRIBUTE:
            self.folders.pop(os.lstat(self.place(path)).st_ino, None)
        return 0


def wait_until(done: float) -> None:
    if (left := done - time.monotonic()) > 0:
        time.sleep(left)


def main(mount: str, backing: str, machine: str, seed: str = "0") -> None:
    with suppress(OSError):
        # Times match the model only if no process waits for a processor. As root, take precedence on a busy machine.
        os.nice(-15)
        Path("/proc/self/autogroup").write_text("-10")
    # Switch threads quickly, so that they wait for the model and not for each other.
    sys.setswitchinterval(0.0002)
    folder = StripedFolder(Path(backing).resolve(), machine_of(machine), int(seed))
    mfusepy.FUSE(
        folder,
        mount,
        foreground=True,
        direct_io=True,
        attr_timeout=3600,
        entry_timeout=3600,
        max_threads=32,
        allow_other=os.geteuid() == 0,
        fsname="stand-in",
        # Tracers record the type of a mount; layouts are set here as on Lustre.
        subtype="lustre",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
