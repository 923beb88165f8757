"""OTF2 archives for tests, written by OTF2's own writer, with events as Score-P writes them."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

otf2 = pytest.importorskip("otf2")
_otf2 = pytest.importorskip("_otf2")
enums = otf2.enums

UNDEFINED = (1 << 64) - 1
MODES = {"read": enums.IoOperationMode.READ, "write": enums.IoOperationMode.WRITE, "flush": enums.IoOperationMode.FLUSH}
PARADIGMS = {"posix": "POSIX", "stdio": "ISOC", "mpiio": "MPI-IO", "other": "ADIOS"}


@contextmanager
def archive(folder, *, resolution=10**9, hosts=("node1",), processes=1, threads=1, **options):
    """An archive to fill: `locations` by (process, thread), factories `region`, `handle` and `file`, and `offset`.

    `options` are passed to the writer.
    """
    with otf2.writer.open(str(folder), timer_resolution=resolution, **options) as trace:
        d = trace.definitions
        root = d.system_tree_node("machine", class_name="machine")
        nodes = [d.system_tree_node(host, class_name="node", parent=root) for host in hosts]
        paradigms = {
            key: d.io_paradigm(name, name, enums.IoParadigmClass.SERIAL, enums.IoParadigmFlag.NONE)
            for key, name in PARADIGMS.items()
        }
        locations = {}
        for process in range(processes):
            group = d.location_group(f"MPI Rank {process}", system_tree_parent=nodes[process % len(nodes)])
            for thread in range(threads):
                name = "Master thread" if not thread else f"Thread {thread} of {process}"
                locations[process, thread] = trace.event_writer_from_location(d.location(name, group=group))

        def region(name, role="FILE_IO", paradigm="NONE"):
            return d.region(
                name,
                region_role=getattr(enums.RegionRole, role),
                paradigm=getattr(enums.Paradigm, paradigm),
            )

        def file(path):
            return d.io_regular_file(path, scope=root)

        def handle(path, paradigm="posix", name=""):
            return d.io_handle(name, file=None if path is None else file(path), io_paradigm=paradigms[paradigm])

        offset = d.attribute("Offset", "Absolute read/write offset within a file.", enums.Type.UINT64)
        yield SimpleNamespace(
            trace=trace, locations=locations, region=region, handle=handle, file=file, offset=offset, paradigms=paradigms
        )


def opened(location, time, handle, region=None, *, mode="READ_WRITE", create=True):
    """An open, inside a region or not."""
    if region is not None:
        location.enter(time, region)
    creation = enums.IoCreationFlag.CREATE if create else enums.IoCreationFlag.NONE
    location.io_create_handle(time, handle, getattr(enums.IoAccessMode, mode), creation, enums.IoStatusFlag.NONE)
    if region is not None:
        location.leave(time + 1, region)


def operation(location, time, took, handle, mode, sizes, region=None, *, offset=None, number=0, flags="NONE"):
    """A call with an operation for each of `sizes` (moved bytes), all begun before the first ends, as for readv."""
    if region is not None:
        location.enter(time, region)
    flag = getattr(enums.IoOperationFlag, flags)
    for i, size in enumerate(sizes):
        wanted = 0 if size == UNDEFINED else size
        location.io_operation_begin(time, handle, MODES[mode], flag, wanted, number + i, attributes=offset)
    for i, size in enumerate(sizes):
        location.io_operation_complete(time + took, handle, size, number + i)
    if region is not None:
        location.leave(time + took, region)
