"""Paths in a trace: one code for all spellings of a path, and the path's class by its name and use.

Files of a run that are not the program's data: files of the system and of MPI, and standard streams.

In a trace of file-system calls, nothing marks the end of MPI_Init: transports open segments when processes first
communicate, long after it. So files are classified by kind, never by time of use. A configuration file that a
program reads before its first message therefore counts as data.

Readers of traces that begin at MPI_Init know files by `classify_path` alone, the others also by `classes_of`.

Names of segments and session folders come from the libraries' sources: MPICH (`mpl/src/shm`), UCX
(`uct/sm/mm/posix`), Open MPI (`btl/sm`, `btl/vader`, `osc/rdma`, session folders of ORTE and PRRTE), PMIx (`gds/ds21`),
PSM2 and PSM3, libfabric (`shm`, `sm2`), MVAPICH (`mv2_shmem`, `ib_shmem`), Intel MPI, Cray MPICH, NCCL, and glibc's
semaphores (`sem_open`).

Probed paths: the tracer records a failed open like one that succeeds.

A path is a probe if no call shows that it existed: in the whole trace it was opened without O_CREAT and O_TRUNC, and
tested by name (stat, access), but never closed, read, written, or used otherwise. Programs look for settings files
in this way (`/etc/romio-hints`). A program that opens a file, never closes it and moves all data with calls that
leave no records (fgets, mmap) is mistaken for a failed look-up.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from vani.calls import FILES, FileClass, Flag, Layer
from vani.columns import Bools, Int8s, Int32s, Ints, small_table, to_arrow, to_numpy
from vani.readers.signatures import Signatures, by_text

_SHARED_LIBRARY = re.compile(r"\.so(\.\d+)*$")


SHM = "/dev/shm/"
_SHARED_MEMORY = re.compile(
    r"/dev/shm/(?:mpich_shm|psm[23]?_shm|fi_shm|fi_sm2|sm2_|open_mpi\.\d|mv2_shmem|ib_shmem|ib_pool|Intel_MPI_|impi[-_]"
    r"|cray-shared-mem|cray-shm|nccl-|nvshmem|cuda\.shm\.|hsakmt_|pmix_|sem\.|psm_[0-9a-f]{8}$|torch_\d|loky-\d|joblib_memmapping_)"
)
"""Names that mean shared memory in this folder only: segments of MPI, GPU libraries, and Python's workers."""
_INTERNAL = re.compile(
    # Segments, which some settings move to the folder for temporary files.
    r"/(?:mpich_shar_tmp|vader_segment\.|sm_segment\.|osc_rdma\.|ucx_shm_posix_|rocm_smi\w*$|pym-\d+-)"
    # Folders of sessions and workers, and what is in them.
    r"|/(?:ompi\.[\w-]+\.\d+|openmpi-sessions-[^/]+|prte\.[\w-]+(?:\.\d+)+|pmix-\d+[\w.-]*|pmix\.[\w-]+\.[^/]+"
    r"|pmix_dstor[\w.-]*|pymp-\w{8}|torch-shm-dir-\w+)(?:/|$)|/ompi\.[\w.-]+\.\d+/(?:pid|jf)\.\d+(?:/|$)"
    # Next to the files of MPI-IO: Open MPI's lock tests and shared pointers, and ROMIO's shared pointers.
    r"|\.locktest\.\d+$|\.lockedfile(?:-\d+)?$|/\.[^/]+\.shfp(?:\.\d+)+$|_cid-+\d+-\d+\.sm$"
)
"""Files of MPI, GPU drivers and workers, in any folder, since TMPDIR moves them."""


def normal_path(path: str) -> str:
    """Normalise the different spellings that the tracer may write for one file: `a//b`, `a/./b`, `a/x/../b`.

    The tracer prepends the working directory to paths that it cannot resolve; if that directory is `.`, an
    absolute path begins with `.//`.
    """
    if path.startswith(".//"):
        path = path[2:]
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def classify_path(path: str) -> FileClass:
    """The class of a file by its path: part of the data set, or counted separately (contract, "file")."""
    if path in ("stdin", "stdout", "stderr", "<stdin>", "<stdout>", "<stderr>"):
        return FileClass.STANDARD_STREAM
    if path.startswith(("socket:", "pipe:", "anon_inode:", "/memfd:")):
        return FileClass.SOCKET_OR_PIPE
    if _INTERNAL.search(path):
        return FileClass.SYSTEM
    if path == "/dev/shm" or path.startswith(SHM):
        return FileClass.SYSTEM if _SHARED_MEMORY.match(path) else FileClass.DATASET
    if path.startswith(("/proc/", "/sys/", "/dev/")) or path in ("/proc", "/sys", "/dev"):
        return FileClass.SYSTEM
    if _SHARED_LIBRARY.search(path):
        return FileClass.SHARED_LIBRARY
    return FileClass.DATASET


class PathTable:
    """Codes of one trace's paths, in order of first appearance; all spellings of a path share a code."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths: list[str] = []
        self._code: dict[str, int] = {}
        """Code of every spelling; a normal path is a spelling of itself."""
        for path in paths:
            self.code(path)

    def code(self, spelling: str) -> int:
        """Return the code of a path; a new path gets a new code."""
        known = self._code.get(spelling)
        if known is not None:
            return known
        path = spelling
        if not path.startswith("/") or "//" in path or "/." in path or path.endswith("/"):
            path = normal_path(path)
        code = self._code.setdefault(path, len(self.paths))
        if code == len(self.paths):
            self.paths.append(path)
        if path != spelling:
            self._code[spelling] = code
        return code

    def codes(self, spellings: pa.Array) -> Int32s:
        """Codes of many paths, shape (n,); each distinct path is looked up once."""
        return by_text(spellings, self.code)


def complete_relative_paths(file: Int32s, layer: Int8s, paths: Sequence[str]) -> None:
    """Replace a library call's relative path by the absolute path that ends with it, if there is exactly one.

    HDF5, NetCDF and MPI-IO calls have the path as the program gave it; the file-system calls that they make have it
    with the directory prepended.

    Parameters
    ----------
    file, layer
        Columns of a whole call table; `file` is modified in place.
    paths
        Paths by code.
    """
    named, above = np.zeros(len(paths), np.bool_), np.zeros(len(paths), np.bool_)
    library = layer > Layer.STDIO
    above[file[library & (file >= 0)]] = True
    relative = {c: paths[c] for c in np.flatnonzero(above).tolist() if not paths[c].startswith("/")}
    if not relative:
        return
    # ROMIO allows a file-system prefix before the path (`ufs:/scratch/x`).
    tails = {c: re.sub(r"^[a-z0-9]+:(?=/)", "", path) for c, path in relative.items()}
    names = {posixpath.basename(path) for path in tails.values()}
    by_name: dict[str, list[int]] = {}
    named[file[~library & (file >= 0)]] = True
    for code in np.flatnonzero(named).tolist():
        name = posixpath.basename(paths[code])
        if name in names and paths[code].startswith("/"):
            by_name.setdefault(name, []).append(code)
    new = np.arange(len(paths), dtype=np.int32)
    for code, path in tails.items():
        tail = path if path.startswith("/") else "/" + path
        matches = [other for other in by_name.get(posixpath.basename(path), ()) if paths[other].endswith(tail)]
        if len(matches) == 1:
            new[code] = matches[0]
    changed = library & (file >= 0)
    file[changed] = new[file[changed]]


_SEGMENT_OF_INTEL = re.compile(r"/dev/shm/shm[_-]")
"""Names too common to count as MPI's if no MPI library is loaded."""
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


def classes_of(paths: Sequence[str], passing: Sequence[int], standard: Bools) -> Int8s:
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
    of_library = re.compile("|".join(re.escape(prefix) + _OF_LIBRARY for prefix in sorted(installed)) or r"(?!)")
    with_mpi = any("/libmpi.so" in path for path in libraries)
    foreign = np.fromiter((_is_apart(path, of_library, with_mpi) for path in paths), np.bool_, len(paths))
    foreign[list(passing)] = True
    classes = np.where(foreign, FileClass.SYSTEM, np.where(standard, FileClass.STANDARD_STREAM, FileClass.DATASET))
    return classes.astype(np.int8)


def _is_apart(path: str, of_library: re.Pattern[str], with_mpi: bool) -> bool:
    if path.startswith(SHM):
        return with_mpi and bool(_SEGMENT_OF_INTEL.match(path))
    if path in _FOLDERS or path.startswith(_SYSTEM):
        return not PYTHON.search(path)
    return path.rpartition("/")[2] in _SETTINGS or bool(_LOCALE.search(path)) or bool(of_library.match(path))


_ON_DESCRIPTORS = frozenset(["fstat", "fstat64", "__fxstat", "__fxstat64"])
"""Functions that query open files."""
_ON_ALL_STREAMS = frozenset(["fflush", "fflush_unlocked"])
"""Functions that accept NULL for all streams; it is recorded under the last file name that fopen did not find."""


class Probes:
    """Collects the uses of each path in a trace."""

    def __init__(self, functions: Sequence[str]) -> None:
        """`functions` are names by code."""
        # -1, the code of a function without a name, selects the last entry.
        self._on_descriptors = np.array([f in _ON_DESCRIPTORS for f in functions] + [False])
        self._on_all_streams = np.array([f in _ON_ALL_STREAMS for f in functions] + [False])
        self._looked_for, self._there = np.zeros(0, np.bool_), np.zeros(0, np.bool_)

    def see(self, signatures: Signatures, ids: Ints) -> None:
        """Add signatures of calls that were made."""
        layer, file, flags = signatures.layer[ids], signatures.file[ids], signatures.flags[ids]
        on_file_system = (layer <= Layer.STDIO) & (file >= 0)
        kind = flags & (Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.DIRECTORY)
        looks = on_file_system & (kind == Flag.OPEN)
        func = signatures.func[ids]
        asks = on_file_system & ((flags & Flag.STAT) != 0) & ~self._on_descriptors[func]
        asks |= on_file_system & self._on_all_streams[func]
        renamed = signatures.rename_to[ids]
        existing = np.concatenate((file[on_file_system & ~looks & ~asks], renamed[renamed >= 0]))
        self._looked_for = marked(self._looked_for, file[looks])
        self._there = marked(self._there, existing)

    def only_probed(self, files: int) -> Bools:
        """Paths that were only probed, shape (files,), bool."""
        return padded(self._looked_for, files) & ~padded(self._there, files)


def summed(counts: Ints, more: Ints) -> Ints:
    """Sum of two columns by number; either may be longer."""
    total = np.zeros(max(len(counts), len(more)), np.int64)
    total[: len(counts)] += counts
    total[: len(more)] += more
    return total


def padded(marks: Bools, length: int) -> Bools:
    """Marks by number, extended or cut to a length."""
    return marks[:length] if len(marks) >= length else np.append(marks, np.zeros(length - len(marks), np.bool_))


def marked(marks: Bools, codes: Int32s) -> Bools:
    """Set the marks of some numbers, in place if they fit."""
    needed = int(codes.max(initial=-1)) + 1
    if needed > len(marks):
        marks = padded(marks, max(needed, 2 * len(marks)))
    marks[codes] = True
    return marks


_FILES_AT_ONCE = 1 << 16


def file_table(paths: Sequence[str], probes: Bools | None, classes: Int8s | None = None) -> pa.Table:
    """`vani.calls.FILES` for paths by code.

    Parameters
    ----------
    probes
        Shape (paths,): paths that were only probed; None if unknown.
    classes
        Shape (paths,): from `classes_of`, where the path alone does not determine the class; None if unknown.
    """
    some = [
        small_table([range(at, at + len(run)), run, [int(classify_path(p)) for p in run]], FILES)
        for at in range(0, max(1, len(paths)), _FILES_AT_ONCE)
        for run in (paths[at : at + _FILES_AT_ONCE],)
    ]
    table = pa.concat_tables(some).combine_chunks()
    kinds = to_numpy(table["class"].combine_chunks())
    if probes is not None:
        kinds = np.where(probes & (kinds == FileClass.DATASET), FileClass.PROBE, kinds)
    if classes is not None:
        kinds = np.where(kinds == FileClass.DATASET, classes, kinds)
    column = to_arrow(kinds.astype(np.int8))
    return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), column)
