"""Tasks and results as bytes: what many tasks have in common travels once, apart from them.

A run has a few large objects that every task refers to (an open trace, the names of all files) and many small tasks.
Objects are told apart by identity: where one of the `constants` turns up inside a task, its number is written. None of
them is a plain list, text or number: these are sent with each task.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from vani.allocator import keep_freed_memory

__all__ = [
    "FAN_IN",
    "call_each",
    "call_each_from_file",
    "fold_each",
    "fold_results",
    "load",
    "load_parts",
    "pack",
    "pack_in_parts",
]


FAN_IN = 8
"""Results that are combined at a time."""


class _Packer(pickle.Pickler):
    def __init__(
        self, file: IO[bytes], constants: Sequence[Any], apart: Callable[[pickle.PickleBuffer], Any] | None = None
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=apart)
        self._number = {id(c): i for i, c in enumerate(constants)}

    def reducer_override(self, obj: Any) -> Any:
        # Asked of objects alone: a persistent id would be asked for of every number and text in them, too.
        number = self._number.get(id(obj))
        return NotImplemented if number is None else (_constant, (number,))


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: IO[bytes], constants: Sequence[Any], buffers: Sequence[memoryview] = ()) -> None:
        super().__init__(file, buffers=buffers)
        self._constants = constants

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (_constant.__module__, _constant.__name__):
            return self._constants.__getitem__
        return super().find_class(module, name)


def _constant(number: int) -> Any:
    """Stands for one of the constants in what is packed."""
    raise LookupError(number)


def pack(value: Any, constants: Sequence[Any] = ()) -> bytes:
    """Bytes of a value, with references in place of the constants in it."""
    file = io.BytesIO()
    _Packer(file, constants).dump(value)
    return file.getvalue()


def pack_in_parts(value: Any, constants: Sequence[Any] = ()) -> list[memoryview]:
    """The same, where the bytes of arrays, the second part and all others, are those of the arrays themselves."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Packer(file, constants, buffers.append).dump(value)
    return [file.getbuffer(), *(one.raw() for one in buffers)]


def load_parts(parts: Sequence[memoryview], constants: Sequence[Any] = ()) -> Any:
    """The value that `pack_in_parts` made parts of; its arrays lie where the parts do."""
    return _Unpacker(io.BytesIO(parts[0]), constants, parts[1:]).load()


def load(parcel: bytes, constants: Sequence[Any] = ()) -> Any:
    """The value that `pack` made bytes of, in this or another process of the same run."""
    return _Unpacker(io.BytesIO(parcel), constants).load()


def call_each(parcel: bytes, constants: Sequence[Any]) -> bytes:
    """Call a packed (function, items) for each item; the list of results, packed."""
    keep_freed_memory()
    function, items = load(parcel, constants)
    return pack([function(item) for item in items])


def fold_each(parcel: bytes, constants: Sequence[Any]) -> bytes:
    """Call a packed (function, items, combine) for each item; the results combined, packed."""
    keep_freed_memory()
    function, items, combine = load(parcel, constants)
    held: list[Any] = []
    for item in items:
        held.append(function(item))
        if len(held) == FAN_IN:
            held = [combine(held)]
    return pack(combine(held))


def fold_results(results: Sequence[bytes], combine: bytes, constants: Sequence[Any]) -> bytes:
    """Combine what `fold_each` and `fold_results` returned."""
    function: Callable[[list[Any]], Any] = load(combine, constants)
    return pack(function([load(r) for r in results]))


@lru_cache(maxsize=2)
def _constants_in(path: Path) -> Sequence[Any]:
    found: Sequence[Any] = load(path.read_bytes())
    return found


def call_each_from_file(parcel: bytes, path: Path) -> bytes:
    """`call_each` with the constants that this run put into a file, which each process loads once."""
    return call_each(parcel, _constants_in(path))
