"""The compiled kernels, where they can be used, and how often each was."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from vani.kernels.build import FOLDER, file_name

__all__ = ["function", "library", "note", "state", "times_used"]

_lock = threading.Lock()
_known: list[ctypes.CDLL | None] = []
_used: dict[str, list[int]] = {}


def library() -> ctypes.CDLL | None:
    """The shared object of the sources as they are, loaded once.

    None where VANI_KERNELS=0 says so, where none was built of these sources, or where it does not load: then numpy
    does the work of every kernel.
    """
    with _lock:
        if not _known:
            _known.append(_loaded())
        return _known[0]


def function(name: str, *arguments: Any) -> Callable[..., int] | None:
    """A kernel by its name in C, with the types of its arguments; None where there are no kernels."""
    kernels = library()
    if kernels is None:
        return None
    found = getattr(kernels, name)
    if found.argtypes is None:
        found.restype, found.argtypes = ctypes.c_int, arguments
    called: Callable[..., int] = found
    return called


def state() -> str:
    """Whether kernels are in use, for people."""
    if library() is not None:
        return "compiled"
    return "off (VANI_KERNELS=0)" if _off() else "none, numpy does their work"


def note(kernel: str, *, used: bool) -> None:
    """Count that `kernel` did a piece of work, or that numpy had to."""
    with _lock:
        _used.setdefault(kernel, [0, 0])[not used] += 1


def times_used() -> Mapping[str, tuple[int, int]]:
    """Per kernel how many pieces of work it did, and how many numpy did though there are kernels, in this process."""
    with _lock:
        return {kernel: (used, declined) for kernel, (used, declined) in sorted(_used.items())}


def _off() -> bool:
    return os.environ.get("VANI_KERNELS") == "0"


def _loaded() -> ctypes.CDLL | None:
    if _off():
        return None
    try:
        # A missing file is told apart from a name that the loader would look for elsewhere by its absolute path.
        return ctypes.CDLL(str((FOLDER / file_name()).absolute()))
    except OSError:
        return None
