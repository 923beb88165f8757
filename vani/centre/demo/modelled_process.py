"""Processes of the programs in `vani centre demo` on the clock of the modelled file system."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from vani.centre.demo.noted import Notes
from vani.centre.demo.programs import Steps
from vani.centre.demo.striped_model import File, Layout, Storage

_IN_FLIGHT: Final = 8
"""Most requests in flight per process. Beyond that, it waits for the oldest."""


@dataclass
class Run:
    """A run of a program: its files, and the counters that Darshan would record.

    Attributes
    ----------
    layout_of
        Function from the path of a new file to its layout.
    files
        All files of the file system, by path.
    """

    storage: Storage
    layout_of: Callable[[str], Layout]
    files: dict[str, File]
    notes: Notes
    created: set[str] = field(default_factory=set)


@dataclass
class ModelledProcess:
    """A process on a node of the machine."""

    run: Run
    rank: int
    processes: int
    node: int

    def compute(self, seconds: float) -> Steps:
        """Compute without I/O for a time."""
        yield self.run.storage.now() + seconds

    def barrier(self) -> Steps:
        """Wait for all processes of the run."""
        yield math.inf

    def write(
        self, path: str, offset: int, size: int, request: int, *, flush: bool = True, shared: bool = False
    ) -> Steps:
        """Open a file, write a part, flush, and close it. The first process of a run creates it."""
        del shared
        run, storage = self.run, self.run.storage
        use = run.notes.use(path, self.rank)
        begin = storage.now()
        if path not in run.created:
            run.created.add(path)
            run.files[path] = storage.create(run.layout_of(path))
            yield storage.metadata(run.files[path].objects)
        else:
            yield storage.metadata()
        file = run.files[path]
        run.notes.opened(use, begin)
        begin, waiting = storage.now(), deque[float]()
        for at in range(offset, offset + size, request):
            storage.write(self.node, file, at, request)
            waiting.append(storage.close(self.node, file))
            if len(waiting) == _IN_FLIGHT:
                yield waiting.popleft()
        yield storage.flush(self.node, file) if flush else storage.close(self.node, file)
        run.notes.moved(use, "WRITE", offset, size, request, begin)
        use.add("FSYNCS", int(flush))
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)

    def append(self, path: str, records: int, size: int) -> Steps:
        """Write small records with a flush after each."""
        run, storage = self.run, self.run.storage
        use, begin = run.notes.use(path, self.rank), storage.now()
        run.created.add(path)
        file = run.files[path] = storage.create(run.layout_of(path))
        yield storage.metadata(file.objects)
        run.notes.opened(use, begin)
        begin = storage.now()
        for record in range(records):
            storage.write(self.node, file, record * size, size)
            yield storage.flush(self.node, file)
        run.notes.moved(use, "WRITE", 0, records * size, size, begin)
        use.add("FSYNCS", records)
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)

    def read(self, path: str, size: int, request: int) -> Steps:
        """Read an existing file from beginning to end."""
        run, storage = self.run, self.run.storage
        use, begin = run.notes.use(path, self.rank), storage.now()
        yield storage.metadata()
        run.notes.opened(use, begin)
        begin = storage.now()
        for at in range(0, size, request):
            yield storage.read(self.node, run.files[path], at, request, size)
        run.notes.moved(use, "READ", 0, size, request, begin)
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)
