"""Files of a run that are not the program's data: files of the system and of MPI, and standard streams.

In a trace of file-system calls, nothing marks the end of MPI_Init: transports open segments when processes first
communicate, long after it. So files are classified by kind, never by time of use. A configuration file that a
program reads before its first message therefore counts as data.

Names of segments and session folders come from the libraries' sources: MPICH (`mpl/src/shm`), UCX
(`uct/sm/mm/posix`), Open MPI (`btl/sm`, `btl/vader`, `osc/rdma`, session folders of ORTE and PRRTE), PMIx (`gds/ds21`),
PSM2 and PSM3, libfabric (`shm`, `sm2`), MVAPICH (`mv2_shmem`, `ib_shmem`), Intel MPI, Cray MPICH, NCCL, and glibc's
semaphores (`sem_open`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vani.calls import FileClass

Bools = NDArray[np.bool_]

SHM = "/dev/shm/"
_SEGMENT = re.compile(
    r"/dev/shm/(?:mpich_shar_tmp|mpich_shm|vader_segment\.|sm_segment\.|osc_rdma\.|ucx_shm_posix_|psm[23]?_shm|fi_shm|fi_sm2"
    r"|sm2_|open_mpi\.\d|mv2_shmem|ib_shmem|ib_pool|Intel_MPI_|impi[-_]|cray-shared-mem|cray-shm|nccl-|pmix_|sem\.)"
)
_SEGMENT_OF_INTEL = re.compile(r"/dev/shm/shm[_-]")
"""Names too common to count as MPI's if no MPI library is loaded."""
_SESSION = re.compile(
    r"/(?:ompi\.[\w-]+\.\d+|openmpi-sessions-[^/]+|prte\.[\w-]+(?:\.\d+)+|pmix-\d+[\w.-]*|pmix\.[\w-]+\.[^/]+|pmix_dstor[\w.-]*)"
    r"(?:/|$)"
)
_SCRATCH = re.compile(r"\.locktest\.\d+$|\.lockedfile(?:-\d+)?$|/\.[^/]+\.shfp\.\d+$")
"""Files next to those of MPI-IO: Open MPI's lock tests and shared pointers, and ROMIO's shared pointers."""
_SETTINGS = frozenset(
    {"mca-params.conf", "openmpi-mca-params.conf", "openmpi-mca-params.conf.local", "pmix-mca-params.conf",
     "prte-mca-params.conf", "ucx.conf"}
)  # fmt: skip
_LIBRARY = re.compile(
    r"^(?P<prefix>.+?)/lib(?:32|64)?(?:/[^/]+){0,2}/"
    r"lib(?:mpi|mpich|mpifort|mpicxx|mpi_\w+|open-pal|open-rte|prrte|pmi2?|pmix|ucp|uct|ucs|fabric|hwloc|psm[23]?)\b[^/]*$"
)
"""An MPI library or one of its transports, and its installation folder."""
_OF_LIBRARY = (
    r"/(?:etc/|(?:share|lib|lib32|lib64)(?:/[\w-]+-linux-gnu)?"
    r"/(?:openmpi|pmix2?|prrte|ucx|hwloc|libfabric|mpich|mvapich2?)(?:/|$))"
)
_SYSTEM = (
    "/etc/", "/usr/lib", "/usr/share/", "/usr/bin/", "/usr/sbin/", "/usr/local/etc/", "/lib/", "/lib32/", "/lib64/",
    "/bin/", "/sbin/", "/run/dbus/", "/run/munge/", "/run/nscd/", "/run/systemd/", "/run/udev/", "/var/run/munge/",
    "/var/run/nscd/", "/var/lib/nscd/", "/var/cache/nscd/", "/var/db/nscd/", "/var/opt/cray/", "/var/spool/alps/",
)  # fmt: skip
_FOLDERS = frozenset(
    {"/", "/usr", "/usr/local", "/usr/local/lib", "/var", "/tmp", "/dev/shm"}
    | {folder.rstrip("/") for folder in _SYSTEM}
)
_LOCALE = re.compile(r"/share/(?:locale|zoneinfo|terminfo|i18n)/")
PYTHON = re.compile(r"/python\d|\.pyc?$|/(?:site|dist)-packages(?:/|$)")
"""Python's files: they are often on the file system that all nodes share, and count as data everywhere."""


def classes_of(paths: Sequence[str], passing: Sequence[int], standard: Bools) -> NDArray[np.int8]:
    """`FileClass` of each file, shape (paths,), where its path alone does not determine one.

    Parameters
    ----------
    paths
        Paths by code.
    passing
        Files in /dev/shm that share memory between processes.
    standard
        Shape (paths,): files that are used only through standard streams.
    """
    libraries = [path for path in paths if ".so" in path]
    installed = {match["prefix"] for path in libraries if (match := _LIBRARY.match(path))} - {"/usr"}
    of_library = re.compile(
        "|".join(re.escape(prefix) + _OF_LIBRARY for prefix in sorted(installed)) or r"(?!)"
    )
    with_mpi = any("/libmpi.so" in path for path in libraries)
    foreign = np.fromiter((_is_apart(path, of_library, with_mpi) for path in paths), np.bool_, len(paths))
    foreign[list(passing)] = True
    classes = np.where(
        foreign, FileClass.SYSTEM, np.where(standard, FileClass.STANDARD_STREAM, FileClass.DATASET)
    )
    return classes.astype(np.int8)


def _is_apart(path: str, of_library: re.Pattern[str], with_mpi: bool) -> bool:
    if path.startswith(SHM):
        return bool(_SEGMENT.match(path)) or (with_mpi and bool(_SEGMENT_OF_INTEL.match(path)))
    if path in _FOLDERS or path.startswith(_SYSTEM):
        return not PYTHON.search(path)
    return (
        path.rpartition("/")[2] in _SETTINGS
        or bool(_SESSION.search(path))
        or bool(_SCRATCH.search(path))
        or bool(_LOCALE.search(path))
        or bool(of_library.match(path))
    )
