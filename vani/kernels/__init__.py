"""Hot loops in C, called through ctypes on numpy arrays.

A kernel is declared once, in its C source, from which `call` reads its parameters. Each has equivalent numpy
code next to its call, as fallback and as test oracle. A kernel checks every count before its loop and declines input
that it does not support; then, and without a compiled file, numpy does the work, so only numpy's code raises errors.
"""

import ctypes
import re
import threading
from collections.abc import Mapping
from enum import IntEnum, IntFlag
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vani.kernels.build import FUNCTION, load, sources

# Numbers that kernels use for attributes of calls, as in their sources' `enum`s.


class ActivityBit(IntFlag):
    """Attributes that a group's calls share, for the kernel `activity`."""

    COUNTED = 1
    READS = 2
    WRITES = 4
    OPENS = 8


class ReachKind(IntEnum):
    """Kinds of groups of calls, for the kernel `reach`."""

    LEFT_OUT = 0
    WRITES = 1
    CUTS = 2


class PatternBit(IntFlag):
    """Attributes that a group's calls share, or a process's files (the last two), for the kernel `pattern`."""

    IS_DATA = 1
    IS_WRITE = 2
    IS_SEEK = 4
    IS_OPEN = 8
    IS_APPEND = 16
    FOLLOWS = 32
    GOES_ON = 64
    LISTED = 128


class OperationBit(IntFlag):
    """Attributes of a single operation, in the kernel `pattern`."""

    JUMPED = 1
    FIRST = 2
    COUNTED = 4
    APPENDED = 8
    FROM_POSITION = 16


_PARAMETER = re.compile(r"(IN|MAYBE|INOUT|OUT|ZEROS|ROWS)\((?:struct )?(\w+), (\w+), ([\w +*]+)\)|int64_t (\w+)")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.DOTALL | re.MULTILINE)
_FIELDS = re.compile(r"^    (u?int\d+)_t ([\w, ]+);", re.MULTILINE)

_MADE = {"OUT", "ZEROS", "ROWS"}
_WRITTEN = _MADE | {"INOUT"}
"""Roles of arrays that a call creates, and of those that the kernel writes."""

_lock = threading.Lock()
_used: dict[str, list[int]] = {}


class _Parameter(NamedTuple):
    """An array with a role that `vani.h` explains, or a number, which has no role."""

    name: str
    role: str = ""
    dtype: np.dtype[Any] = np.dtype(np.int64)
    length: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Sum of products of a number and parameters."""
    of_length: str = ""
    """The parameter that gives its length, if it is a single one."""


def call(kernel: str, **given: Any) -> dict[str, NDArray[Any]] | None:
    """Call a kernel.

    Parameters
    ----------
    kernel
        Name without `vani_`.
    given
        Arrays and numbers by parameter name. A number that is the length of a given array may be
        omitted. Read-only integers are converted; callers must make sure that they fit.

    Returns
    -------
    dict or None
        The arrays that it created or changed, by name; None if numpy must do the work.

    Raises
    ------
    TypeError
        A parameter is missing or unknown, or an array has the wrong type or length for the kernel.
    """
    function = _functions().get(kernel)
    if function is None:
        return None
    parameters = _parameters()[kernel]
    arrays: dict[str, NDArray[Any]] = {}
    numbers: dict[str, int] = {}
    for p in parameters:
        value = given.pop(p.name, None)
        if value is None:
            continue
        if p.role:
            arrays[p.name] = _array(value, p)
            if p.of_length and p.of_length not in numbers:
                numbers[p.of_length] = arrays[p.name].size
        else:
            numbers[p.name] = int(value)
    if given:
        raise TypeError(f"kernel {kernel} takes no {', '.join(given)}")
    arguments: list[int | None] = []
    for p in parameters:
        if not p.role:
            if p.name not in numbers:
                raise TypeError(f"kernel {kernel} needs {p.name}")
            arguments.append(numbers[p.name])
            continue
        array = arrays.get(p.name)
        if array is None and p.role not in _MADE:
            if p.role != "MAYBE":
                raise TypeError(f"kernel {kernel} needs {p.name}")
            arguments.append(None)
            continue
        length = numbers[p.of_length] if p.of_length else _length(p.length, numbers)
        if array is None:
            array = arrays[p.name] = (np.zeros if p.role == "ZEROS" else np.empty)(length, p.dtype)
        elif array.size != length:
            raise TypeError(f"{p.name} has {array.size} elements, kernel {kernel} takes {length}")
        arguments.append(array.__array_interface__["data"][0])
    rows = function(*arguments)
    note(kernel, used=rows >= 0)
    if rows < 0:
        return None
    return {
        p.name: arrays[p.name][:rows] if p.role == "ROWS" else arrays[p.name] for p in parameters if p.role in _WRITTEN
    }


def _array(value: NDArray[Any], parameter: _Parameter) -> NDArray[Any]:
    """An array in the form that C expects, converted if it is read-only."""
    if parameter.role not in _WRITTEN:
        value = value.astype(parameter.dtype, order="C", casting="same_kind", copy=False)
        return value if value.flags.aligned else value.copy()
    if value.dtype != parameter.dtype or not value.flags.carray:
        raise TypeError(f"{parameter.name} is not a contiguous array of {parameter.dtype}")
    return value


def _length(terms: tuple[tuple[int, tuple[str, ...]], ...], numbers: Mapping[str, int]) -> int:
    total = 0
    for factor, names in terms:
        product = factor
        for name in names:
            product *= numbers[name]
        total += product
    return total


def columns(table: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Contiguous columns of a table of structs, in field order."""
    return tuple(np.ascontiguousarray(table[name]) for name in table.dtype.names or ())


def dtype_of(kernel: str, array: str) -> np.dtype[Any]:
    """Element type of a kernel's array parameter."""
    return next(p.dtype for p in _parameters()[kernel] if p.name == array)


def available() -> bool:
    """Whether there are compiled kernels."""
    return bool(_functions())


def note(kernel: str, *, used: bool) -> None:
    """Count a piece of work that `kernel` did, or that numpy had to do."""
    with _lock:
        _used.setdefault(kernel, [0, 0])[not used] += 1


def times_used() -> Mapping[str, tuple[int, int]]:
    """Per kernel, the pieces of work that it did, and those that numpy did despite kernels, in this process."""
    with _lock:
        return {kernel: (used, declined) for kernel, (used, declined) in sorted(_used.items())}


@cache
def _functions() -> dict[str, Any]:
    """Kernels by name; empty if numpy does the work."""
    library, functions = load().library, {}
    for name, parameters in _parameters().items() if library is not None else ():
        functions[name] = getattr(library, f"vani_{name}")
        functions[name].restype = ctypes.c_int64
        functions[name].argtypes = [ctypes.c_void_p if p.role else ctypes.c_int64 for p in parameters]
    return functions


@cache
def _parameters() -> dict[str, tuple[_Parameter, ...]]:
    """Parameters of each kernel, from its source."""
    texts = {path: _COMMENT.sub("", path.read_text()) for path in sources()}
    shared = [struct for path, text in texts.items() if path.suffix == ".h" for struct in _structs(text)]
    kernels = {}
    for path, text in texts.items():
        if path.suffix == ".c":
            types = dict(shared + _structs(text))
            for name, parameters in FUNCTION.findall(text):
                kernels[name] = tuple(_parameter(match, types) for match in _PARAMETER.finditer(parameters))
    return kernels


def _parameter(match: re.Match[str], types: Mapping[str, np.dtype[Any]]) -> _Parameter:
    role, element, array, length, number = match.groups()
    if number:
        return _Parameter(number)
    dtype = types[element] if element in types else np.dtype(element.removesuffix("_t"))
    terms = [term.split(" * ") for term in length.split(" + ")]
    return _Parameter(
        array,
        role,
        dtype,
        tuple((prod(int(f) for f in fs if f.isdecimal()), tuple(f for f in fs if not f.isdecimal())) for fs in terms),
        of_length=length if length.isidentifier() else "",
    )


def _structs(text: str) -> list[tuple[str, np.dtype[Any]]]:
    """Types of the structs in a source that contain only numbers."""
    structs = []
    for name, body in _STRUCT.findall(text):
        fields = [(field, kind) for kind, names in _FIELDS.findall(body) for field in names.split(", ")]
        if "*" not in body:
            structs.append((name, np.dtype(fields, align=True)))
    return structs



