"""What was found in the calls of a workload, kept in the cache: other options neither decode nor measure it again.

One file per workload: a digest, a text in JSON, and after it the bytes of the arrays that the text refers to. In it are
numbers, texts, arrays and tables, and the dataclasses of Vani that hold them; to read it runs no code that it names.
What is damaged, of another version of Vani or writable by others is as good as not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.columns import narrow
from vani.plug_ins import plug_ins
from vani.store.cache import cache_directory, make_folder
from vani.store.manifest import OTHERS_WRITE
from vani.store.read import TABLES, Store

__all__ = ["FEWEST_CALLS", "MOST_BYTES", "PartialResults", "are_kept", "may_be_known"]

Result = TypeVar("Result")

FEWEST_CALLS = 1 << 17
"""Of a workload whose results are worth keeping: fewer are decoded and measured faster than what does it is loaded."""
MOST_BYTES = 1 << 30
"""Of all files together; those go first that were not used for longest."""
_MOST_OF_ONE = MOST_BYTES // 4
_MOST_RESULTS = 16
_BEGIN = b"vani.partial-results/3\n"
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A named pipe in the place of a file would block otherwise."""
_ROOT = Path(__file__).resolve().parents[1]
_CODE = ("analyzers", "engine", "kernels", "readers", "store")
_KINDS = ("vani.analyzers.", "vani.store.manifest")
"""Modules whose dataclasses may be in a file."""


def are_kept() -> bool:
    """Tell whether results are kept and found: VANI_PARTIAL_RESULTS=0 says no."""
    return os.environ.get("VANI_PARTIAL_RESULTS") != "0"


def may_be_known(digest: str) -> bool:
    """Tell whether there are results of a workload that begins with the trace of this digest."""
    folder = _folder()
    return folder is not None and any(folder.glob(f"{digest[:16]}-*-{os.geteuid()}.bin"))


@cache
def _state_of_code() -> str:
    found = _states(_ROOT, within=False)
    for name in _CODE:
        found += _states(_ROOT / name)
    return "\n".join(sorted(found))


def _states(folder: str | Path, *, within: bool = True) -> list[str]:
    """Path, size and time of the code in a folder, and `within` those in it."""
    found = []
    # To ask the system for every path takes seven times as long.
    with os.scandir(folder) as entries:
        for one in entries:
            if one.name.endswith((".py", ".so")):
                state = one.stat()
                found.append(f"{one.path[len(str(_ROOT)) :]} {state.st_size} {state.st_mtime_ns}")
            elif within and one.name != "__pycache__" and one.is_dir(follow_symlinks=False):
                found += _states(one.path)
    return found


class PartialResults:
    """What the passes over the calls of one workload found, each under the name of its pass and what it depends on.

    Parameters
    ----------
    digests
        Of the traces, in their order.
    about
        What else results depend on: texts. All depend on the code of Vani, too, whatever its version says.
    """

    def __init__(self, digests: Sequence[str], about: Sequence[str]) -> None:
        self._key = hashlib.sha256(json.dumps([_state_of_code(), *digests, *about]).encode()).hexdigest()
        self._name = f"{digests[0][:16]}-{self._key[:32]}-{os.geteuid()}.bin"
        found = _find(self._name, self._key) or {}
        if found and _has_plugins():
            found = {}
        self._stores: list[Any] = found.get("stores", [])
        self._results: dict[str, Any] = found.get("results", {})
        self._is_new = False

    @property
    def stores(self) -> list[Store]:
        """The stores of its traces without their calls; none if nothing is known of them."""
        return [Store(Path(f"<{one.digest[:16]}>"), one, {}, tables) for one, tables in self._stores]

    def of(self, name: str, about: Sequence[NDArray[Any] | str], make: Callable[[], Result]) -> Result:
        """What a pass found, or, where that is not known, finds.

        Parameters
        ----------
        about
            What it depends on besides the workload.
        """
        digest = hashlib.sha256()
        for one in about:
            digest.update(
                one.encode() if isinstance(one, str) else f"{one.dtype}{one.shape}".encode() + one.tobytes()
            )
        key = f"{name} {digest.hexdigest()}"
        self._is_new |= key not in self._results
        found: Result = self._results.pop(key) if key in self._results else make()
        # Last, as what was used last.
        self._results[key] = found
        return found

    def keep(self, stores: Sequence[Store]) -> None:
        """Write the results that are new, if the cache takes them.

        Parameters
        ----------
        stores
            Of the traces, with their small tables.
        """
        if not self._is_new or _has_plugins():
            return
        tables = [
            [one.manifest, {name: getattr(one, attribute) for name, attribute in TABLES}] for one in stores
        ]
        # Of the many options that somebody may try, the last ones; what all of them share was used each time.
        results = dict(list(self._results.items())[-_MOST_RESULTS:])
        _write(self._name, {"key": self._key, "stores": tables, "results": results})


def _has_plugins() -> bool:
    """Readers or measures are installed of which nobody knows when they change."""
    return any(plug_ins(group) for group in ("vani.readers", "vani.analyzers"))


def _find(name: str, key: str) -> Any:
    """The results in the file of this name; None unless they were written by this user under this key."""
    folder = _folder()
    if folder is None:
        return None
    try:
        # A name may be changed, or be a link, by whoever can write to the folder: the file itself is checked.
        with os.fdopen(os.open(folder / name, _READING), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_size > _MOST_OF_ONE:
                return None
            if state.st_uid not in (os.geteuid(), 0) or state.st_mode & OTHERS_WRITE:
                return None
            content = _read(file.read())
            os.utime(file.fileno())
        return content if content["key"] == key else None
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        ImportError,
        pa.ArrowException,
    ):
        return None


def _write(name: str, results: object) -> None:
    folder = _folder()
    if folder is None:
        return
    try:
        body = b"".join(_pieces(results))
    except (TypeError, ValueError):
        # A measure that finds something else than numbers.
        return
    if len(body) > _MOST_OF_ONE:
        return
    partial = folder / f".{name}.{os.urandom(4).hex()}.partial"
    with suppress(OSError):
        make_folder(folder)
        _sweep(folder)
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
                file.write(_BEGIN + hashlib.sha256(body).digest() + body)
            # Whatever another user has put in its place, such as a pipe, is replaced and not opened.
            partial.replace(folder / name)
        finally:
            partial.unlink(missing_ok=True)


def _folder() -> Path | None:
    """The folder of all files."""
    found = cache_directory()
    return None if found is None else found / "results"


def _sweep(folder: Path) -> None:
    """Remove this user's files beyond the limit, and what runs that were killed left."""
    files = []
    for path in folder.iterdir():
        with suppress(OSError):
            state = path.lstat()
            if state.st_uid != os.geteuid():
                continue
            if path.suffix == ".bin":
                files.append((state.st_mtime, state.st_size, path))
            elif path.suffix == ".partial" and time.time() - state.st_mtime > 24 * 3600:
                path.unlink()
    left = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if left <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        left -= size


def _pieces(what: object) -> list[bytes | memoryview]:
    """What to write behind the digest, one after another; the arrays are not copied for it."""
    arrays: list[NDArray[Any]] = []
    tree = _plain(what, arrays)
    # To write them takes longest.
    kept = [np.ascontiguousarray(narrow(one) if one.dtype == np.int64 else one) for one in arrays]
    described = [
        [one.dtype.str, list(one.shape), small.dtype.str] for one, small in zip(arrays, kept, strict=True)
    ]
    head = json.dumps({"tree": tree, "arrays": described}).encode()
    body: list[bytes | memoryview] = [len(head).to_bytes(8, "little"), head]
    body.extend(one.reshape(-1).view(np.uint8).data for one in kept)
    return body


def _plain(value: object, arrays: list[NDArray[Any]]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype}")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_table(value)
        arrays.append(np.frombuffer(sink.getvalue(), np.uint8))
        return {"table": len(arrays) - 1}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_plain(one, arrays) for one in value]}
    kind = type(value)
    if is_dataclass(value) and kind.__module__.startswith(_KINDS):
        held = {one.name: _plain(getattr(value, one.name), arrays) for one in fields(value)}
        return {"object": [kind.__module__, kind.__qualname__], "fields": held}
    # Last: to ask it of a class for the first time takes long.
    if isinstance(value, Mapping):
        return {"dict": [[_plain(k, arrays), _plain(v, arrays)] for k, v in value.items()]}
    raise TypeError(f"{kind.__name__} is not kept")


def _read(content: bytes) -> Any:
    body = memoryview(content)[len(_BEGIN) + 32 :]
    digest = content[len(_BEGIN) : len(_BEGIN) + 32]
    if not content.startswith(_BEGIN) or hashlib.sha256(body).digest() != digest:
        raise ValueError("damaged")
    at = 8 + int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8:at]))
    arrays = []
    for dtype, shape, kept in head["arrays"]:
        kind = np.dtype(kept)
        if {kind.kind, np.dtype(dtype).kind} - set("biuf"):
            raise ValueError("no array of numbers")
        count = int(np.prod(shape, dtype=np.int64))
        # A copy lies where kernels want it.
        arrays.append(np.frombuffer(body, kind, count, at).reshape(shape).astype(dtype))
        at += count * kind.itemsize
    return _value(head["tree"], arrays)


def _value(tree: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "table" in tree:
        with pa.ipc.open_stream(pa.py_buffer(arrays[tree["table"]])) as stream:
            return stream.read_all()
    if "list" in tree:
        return [_value(one, arrays) for one in tree["list"]]
    if "tuple" in tree:
        return tuple(_value(one, arrays) for one in tree["tuple"])
    if "dict" in tree:
        return {_value(k, arrays): _value(v, arrays) for k, v in tree["dict"]}
    module, name = tree["object"]
    if not module.startswith(_KINDS):
        raise ValueError(f"{module} is none of Vani's results")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"{name} is no dataclass")
    return kind(**{name: _value(one, arrays) for name, one in tree["fields"].items()})
