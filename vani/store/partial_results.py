"""Cached results of passes over a workload's calls, so that other options neither decode nor measure it again.

One `.npz` file per workload: a JSON text, and the arrays to which the text refers. It stores
numbers, strings, arrays and tables, and Vani's dataclasses around them; reading it runs no code that it names. A
file that is damaged, of another Vani version or writable by others is ignored.
"""

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
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from vani.columns import Numbers, narrow
from vani.plug_ins import plug_ins
from vani.store.cache import cache_directory, make_folder
from vani.store.read import OTHERS_WRITE, TABLES, Store

Result = TypeVar("Result")

FEWEST_CALLS = 1 << 17
"""Minimum calls of a workload whose results are stored: smaller ones are measured faster than libraries load."""
MAX_BYTES = 1 << 30
"""Maximum bytes of all files together; those unused for longest are removed first."""
_MAX_OF_ONE = MAX_BYTES // 4
_MAX_RESULTS = 16
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags for opening a file; without them, a named pipe in its place would block."""
_ROOT = Path(__file__).resolve().parents[1]
_CODE = ("analyzers", "engine", "kernels", "readers", "store")
_KINDS = ("vani.analyzers.", "vani.store.read")
"""Modules whose dataclasses a file may contain."""
_UNUSABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ImportError, BadZipFile, pa.ArrowException)
"""Errors of a damaged file."""


def are_kept() -> bool:
    """Whether results are stored and looked up: VANI_PARTIAL_RESULTS=0 disables both."""
    return os.environ.get("VANI_PARTIAL_RESULTS") != "0"


def may_be_known(digest: str) -> bool:
    """Whether there are results of a workload that begins with the trace of this digest."""
    folder = _folder()
    return folder is not None and any(folder.glob(f"{digest[:16]}-*-{os.geteuid()}.bin"))


@cache
def _state_of_code() -> str:
    states = _states(_ROOT, within=False)
    for name in _CODE:
        states += _states(_ROOT / name)
    return "\n".join(sorted(states))


def _states(folder: str | Path, *, within: bool = True) -> list[str]:
    """Path, size and time of the code files in a folder, and `within` in its subfolders, too."""
    states = []
    # pathlib takes seven times as long.
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".so")):
                status = entry.stat()
                states.append(f"{entry.path[len(str(_ROOT)) :]} {status.st_size} {status.st_mtime_ns}")
            elif within and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                states += _states(entry.path)
    return states


class PartialResults:
    """Results of the passes over one workload's calls, by the name of the pass and its inputs.

    Parameters
    ----------
    digests
        Digests of the traces, in order.
    about
        Further texts on which results depend. All results also depend on Vani's code, not only on its version.
    """

    def __init__(self, digests: Sequence[str], about: Sequence[str]) -> None:
        self._key = hashlib.sha256(json.dumps([_state_of_code(), *digests, *about]).encode()).hexdigest()
        self._name = f"{digests[0][:16]}-{self._key[:32]}-{os.geteuid()}.bin"
        saved = _find(self._name, self._key) or {}
        if saved and _has_plugins():
            saved = {}
        self._stores: list[Any] = saved.get("stores", [])
        self._results: dict[str, Any] = saved.get("results", {})
        self._is_new = False

    @property
    def stores(self) -> list[Store]:
        """The stores of its traces without their calls; empty if the cache has no file of the workload."""
        return [
            Store(Path(f"<{manifest.digest[:16]}>"), manifest, tables=tables)
            for manifest, tables in self._stores
        ]

    def of(self, name: str, about: Sequence[Numbers | str], make: Callable[[], Result]) -> Result:
        """The result of a pass: the stored one, or the result of `make`.

        Parameters
        ----------
        about
            Arrays and texts on which it depends, in addition to the workload.
        """
        digest = hashlib.sha256()
        for item in about:
            digest.update(
                item.encode()
                if isinstance(item, str)
                else f"{item.dtype}{item.shape}".encode() + item.tobytes()
            )
        key = f"{name} {digest.hexdigest()}"
        self._is_new |= key not in self._results
        result: Result = self._results.pop(key) if key in self._results else make()
        # Move it to the end, as the most recently used one.
        self._results[key] = result
        return result

    def keep(self, stores: Sequence[Store]) -> None:
        """Write new results, if the cache accepts them.

        Parameters
        ----------
        stores
            Stores of the traces, with their small tables.
        """
        if not self._is_new or _has_plugins():
            return
        tables = [
            [store.manifest, {name: getattr(store, attribute) for name, attribute in TABLES}]
            for store in stores
        ]
        # Only the results of the last option sets are kept; results that all sets share were used each time.
        results = dict(list(self._results.items())[-_MAX_RESULTS:])
        _write(self._name, {"key": self._key, "stores": tables, "results": results})


def _has_plugins() -> bool:
    """Whether other distributions' readers or measures are installed, whose changes Vani cannot detect."""
    return any(plug_ins(group) for group in ("vani.readers", "vani.analyzers"))


def _find(name: str, key: str) -> Any:
    """The results in the file of this name; None unless this user wrote them under this key."""
    folder = _folder()
    if folder is None:
        return None
    try:
        # Others who can write to the folder may swap the name or make it a link, so the opened file is checked.
        with os.fdopen(os.open(folder / name, _READING), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_OF_ONE:
                return None
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & OTHERS_WRITE:
                return None
            content = _read(file.read())
            os.utime(file.fileno())
        return content if content["key"] == key else None
    except (*_UNUSABLE, EOFError):
        return None


def _write(name: str, results: object) -> None:
    folder = _folder()
    if folder is None:
        return
    try:
        body = _packed(results)
    except (TypeError, ValueError):
        # A measure has a result of another type.
        return
    if len(body) > _MAX_OF_ONE:
        return
    partial = folder / f".{name}.{os.urandom(4).hex()}.partial"
    with suppress(OSError):
        make_folder(folder)
        _sweep(folder)
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
                file.write(body)
            # Anything that another user put in its place, such as a pipe, is replaced without being opened.
            partial.replace(folder / name)
        finally:
            partial.unlink(missing_ok=True)


def _folder() -> Path | None:
    """The folder of all files."""
    directory = cache_directory()
    return None if directory is None else directory / "results"


def _sweep(folder: Path) -> None:
    """Remove this user's files beyond the limit, and unfinished ones from runs that were killed."""
    files = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid != os.geteuid():
                continue
            if path.suffix == ".bin":
                files.append((status.st_mtime, status.st_size, path))
            elif path.suffix == ".partial" and time.time() - status.st_mtime > 24 * 3600:
                path.unlink()
    left = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if left <= MAX_BYTES:
            break
        path.unlink(missing_ok=True)
        left -= size


def _packed(results: object) -> bytes:
    """The content of a file."""
    arrays: list[Numbers] = []
    tree = json.dumps(_plain(results, arrays)).encode()
    content = BytesIO()
    np.savez(content, np.frombuffer(tree, np.uint8), *arrays)
    return content.getvalue()


def _plain(value: object, arrays: list[Numbers]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype}")
        # Narrow types, because writing takes longest.
        arrays.append(narrow(value) if value.dtype == np.int64 else value)
        return {"array": len(arrays), "type": value.dtype.str}
    if isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_table(value)
        arrays.append(np.frombuffer(sink.getvalue(), np.uint8))
        return {"table": len(arrays)}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_plain(item, arrays) for item in value]}
    kind = type(value)
    if is_dataclass(value) and kind.__module__.startswith(_KINDS):
        columns = {field.name: _plain(getattr(value, field.name), arrays) for field in fields(value)}
        return {"object": [kind.__module__, kind.__qualname__], "fields": columns}
    # Last, because the first such test of a class is slow.
    if isinstance(value, Mapping):
        return {"dict": [[_plain(k, arrays), _plain(v, arrays)] for k, v in value.items()]}
    raise TypeError(f"{kind.__name__} is not kept")


def _read(content: bytes) -> Any:
    with np.load(BytesIO(content), allow_pickle=False) as stored:
        # Numbered from the text, which is the first.
        arrays = [stored[name] for name in stored.files]
    return _value(json.loads(arrays[0].tobytes()), arrays)


def _value(tree: Any, arrays: Sequence[Numbers]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]].astype(tree["type"], copy=False)
    if "table" in tree:
        with pa.ipc.open_stream(pa.py_buffer(arrays[tree["table"]])) as stream:
            return stream.read_all()
    if "list" in tree:
        return [_value(item, arrays) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(_value(item, arrays) for item in tree["tuple"])
    if "dict" in tree:
        return {_value(k, arrays): _value(v, arrays) for k, v in tree["dict"]}
    module, name = tree["object"]
    if not module.startswith(_KINDS):
        raise ValueError(f"{module} is not a module of Vani's results")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"{name} is not a dataclass")
    return kind(**{name: _value(field, arrays) for name, field in tree["fields"].items()})
