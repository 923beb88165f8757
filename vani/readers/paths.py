"""Paths in a trace: one code for all spellings of a path, and the path's class by its name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FileClass, Layer
from vani.columns import Texts, to_numpy

_LIBRARY = re.compile(r"\.so(\.\d+)*$")


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
    if path == "/dev/shm" or path.startswith("/dev/shm/"):
        return FileClass.DATASET
    if path.startswith(("/proc/", "/sys/", "/dev/")) or path in ("/proc", "/sys", "/dev"):
        return FileClass.SYSTEM
    if _LIBRARY.search(path):
        return FileClass.SHARED_LIBRARY
    return FileClass.DATASET


class Paths(Protocol):
    """Assigns codes to paths."""

    def codes(self, spellings: pa.Array, positions: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of many paths, shape (n,); `positions` (n,), ascending, are their positions in the trace."""


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

    def codes(self, spellings: pa.Array, positions: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Codes of many paths, shape (n,); each distinct path is looked up once.

        Parameters
        ----------
        positions
            Unused: a table that is read as a whole presents its paths in order.
        """
        del positions
        encoded = pc.dictionary_encode(spellings)
        lookup = np.array([self.code(s) for s in encoded.dictionary.to_pylist()], dtype=np.int32)
        codes: NDArray[np.int32] = lookup[to_numpy(encoded.indices)]
        return codes


def complete_relative_paths(file: NDArray[np.int32], layer: NDArray[np.int8], paths: Sequence[str]) -> None:
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
    if isinstance(paths, Texts):
        above &= ~to_numpy(pc.starts_with(paths.column, "/"))
    relative = {c: paths[c] for c in np.flatnonzero(above).tolist() if not paths[c].startswith("/")}
    if not relative:
        return
    # ROMIO allows a file-system prefix before the path (`ufs:/scratch/x`).
    tails = {c: re.sub(r"^[a-z0-9]+:(?=/)", "", path) for c, path in relative.items()}
    names = {posixpath.basename(path) for path in tails.values()}
    by_name: dict[str, list[str]] = {}
    named[file[~library & (file >= 0)]] = True
    codes: dict[str, int] = {}
    for code in np.flatnonzero(named).tolist():
        path = paths[code]
        name = posixpath.basename(path)
        if name in names and path.startswith("/"):
            by_name.setdefault(name, []).append(path)
            codes[path] = code
    new = np.arange(len(paths), dtype=np.int32)
    for code, path in tails.items():
        tail = path if path.startswith("/") else "/" + path
        matches = [p for p in by_name.get(posixpath.basename(path), ()) if p.endswith(tail)]
        if len(matches) == 1:
            new[code] = codes[matches[0]]
    changed = library & (file >= 0)
    file[changed] = new[file[changed]]
