"""Places of stores: in the cache directory, by the digest of their trace, or in any folder, by a profile's traces.

Locks protect stores in use, and end with their process, however it ends. `flock` works across a machine's nodes on NFS,
GPFS and on Lustre mounted with `flock`. On file systems without locks, only the time of last use is known.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import StoreError
from vani.site import setting
from vani.store.read import OTHERS_WRITE, STORE_SCHEMA, Store, open_store

if TYPE_CHECKING:
    from vani.schema.profile import TraceEntity

WRITING = ".lock"
"""File in a store that is being written; the writer keeps it locked."""
_USING = "manifest.json"
MAX_HELD = 128
"""Maximum number of locks of one run: each is an open file, and a process may have a thousand."""


class LockState(Enum):
    """Known state of a lock."""

    FREE = "free"
    """This process now has the lock."""
    TAKEN = "taken"
    UNKNOWN = "unknown"
    """There is nothing to lock, or the file system has no locks."""


@contextmanager
def being_written(store: Path) -> Iterator[None]:
    """Mark the store as being written, so that its files are not removed, however long it takes."""
    place = store / WRITING
    with place.open("w", encoding="utf-8") as file:
        file.write(f"{os.uname().nodename} {os.getpid()}\n")
        file.flush()
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
        place.unlink(missing_ok=True)


@contextmanager
def being_used(store: Path) -> Iterator[bool]:
    """Mark the store as being read, so that it is not removed; yields False if removal has begun.

    Also updates the time of its last use.
    """
    with _locked(store / _USING, fcntl.LOCK_SH) as state:
        if state is not LockState.TAKEN:
            with suppress(OSError):
                os.utime(store)
        yield state is not LockState.TAKEN


class InUse:
    """The stores that a run reads.

    Parameters
    ----------
    until
        Ends with the run.
    """

    def __init__(self, until: ExitStack) -> None:
        self._until = until
        self._held = 0

    def hold(self, store: Path) -> bool:
        """Prevent others from removing a store while the run lasts; False if removal has begun.

        Beyond `MAX_HELD` stores, only the time of their last use protects them.
        """
        if self._held >= MAX_HELD:
            with being_used(store) as there:
                return there
        self._held += 1
        return self._until.enter_context(being_used(store))


@contextmanager
def removable(store: Path, *, partial: bool) -> Iterator[LockState]:
    """Prevent others from using a store that will be removed, if it is not in use."""
    with _locked(store / (WRITING if partial else _USING), fcntl.LOCK_EX) as state:
        yield state


@contextmanager
def _locked(file: Path, kind: int) -> Iterator[LockState]:
    try:
        # NFS grants an exclusive lock only for a file that is open for writing.
        handle = os.open(file, os.O_RDWR if kind == fcntl.LOCK_EX else os.O_RDONLY)
    except OSError:
        yield LockState.UNKNOWN
        return
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            state = LockState.FREE
        except BlockingIOError:
            state = LockState.TAKEN
        except OSError:
            state = LockState.UNKNOWN
        yield state
    finally:
        os.close(handle)


MAX_BYTES = 20 << 30
_RECENT_S = 3600.0
"""Stores that were used within this time are kept, even if no lock shows that they are in use."""
_ABANDONED_S = 24 * 3600.0
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
_FORGOTTEN_S = 30 * _ABANDONED_S
"""The same if no lock can show whether the writer is alive."""


def cache_directory() -> Path | None:
    """The folder of this user's stores and results.

    It is named by VANI_CACHE or a settings file (`vani.site`), or is `vani/` in the user's cache directory (XDG base
    directory specification). If other users can change the folder, such as a shared one of mode 1777, the result is a
    private folder in it: anyone who can rename files in a folder could swap the results of two traces.

    None if the user has no home, such as a container's user who is missing from the user table, if this user cannot
    access the folder, or if the private folder is not exclusively this user's.
    """
    base = _configured()
    if base is None:
        return None
    try:
        is_shared = _is_shared(base)
    except (FileNotFoundError, NotADirectoryError):
        return base
    except OSError:
        return None
    if not os.access(base, os.X_OK):
        return None
    if not is_shared:
        return base
    private = base / f"user-{os.geteuid()}"
    return private if not os.path.lexists(private) or _is_private(private) else None


def stores_folder() -> Path | None:
    """The folder of stores in the cache directory, which need not exist yet; None without a cache directory."""
    directory = cache_directory()
    return None if directory is None else (directory / "stores").absolute()


def _configured() -> Path | None:
    named = setting("cache").value
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base, "vani")
    try:
        return Path.home() / ".cache" / "vani"
    except RuntimeError:
        return None


def _is_shared(folder: Path) -> bool:
    """Whether other users can rename or replace files in a folder; OSError if unknown."""
    state = folder.stat()
    return state.st_uid != os.geteuid() or bool(state.st_mode & OTHERS_WRITE)


def _is_private(folder: Path) -> bool:
    """Whether a folder, not a link to one, is closed to all other users."""
    try:
        state = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & _OTHER_USERS


def make_folder(folder: Path) -> None:
    """Create a folder in the cache directory, and that directory, if they do not exist.

    Raises
    ------
    OSError
        It cannot be created, or another user created it first.
    """
    # Only the last parent gets this mode; those above it are not Vani's.
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = cache_directory()
    if directory is None or directory.absolute() != folder.parent.absolute():
        raise PermissionError(errno.EPERM, "is not this user's alone", str(folder.parent))
    folder.mkdir(mode=0o755, exist_ok=True)


def store_path(folder: Path, name: str, digest: str) -> Path:
    """Place of a trace's store in a folder of stores, made of the trace's name, for people, and its digest."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".")[:60] or "trace"
    version = STORE_SCHEMA.rpartition("/")[2]
    return folder / f"{plain}-{digest[:16]}-v{version}"


def places_of(folder: Path, name: str, digest: str) -> tuple[Path, Path]:
    """Possible places of a trace's store: the common one, and this user's own if another user has taken the name."""
    place = store_path(folder, name, digest)
    return place, place.with_name(f"{place.name}-{os.geteuid()}")


def own_place(folder: Path, name: str, digest: str) -> Path:
    """The one of `places_of` where this user can put a store."""
    place, own = places_of(folder, name, digest)
    try:
        taken = place.lstat().st_uid != os.geteuid()
    except OSError:
        return place
    return own if taken else place


def find_store(path: Path, digest: str) -> Store | None:
    """The store at `path` if it is complete, matches the trace's digest, and no other user can have written it."""
    try:
        store = open_store(path)
    except StoreError:
        return None
    return store if store.manifest.digest == digest else None


def sweep(folder: Path) -> None:
    """Remove leftovers of this user's interrupted runs, and stores beyond 20 GiB.

    The least recently used stores go first. Stores in use are kept, and so are those used
    within the last hour.
    """
    stores = []
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    now = time.time()
    for entry in entries:
        try:
            status = entry.lstat()
            if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
                continue
            if entry.name.startswith(".") and entry.name.endswith((".partial", ".old")):
                _sweep_unfinished(entry, now - _last_change(entry))
            elif (entry / "manifest.json").is_file():
                size = sum(f.lstat().st_size for f in entry.rglob("*") if f.is_file())
                stores.append((status.st_mtime, size, entry))
        except OSError:
            # Other processes sweep, too.
            continue
    total = sum(size for _, size, _ in stores)
    for used, size, entry in sorted(stores):
        if total <= MAX_BYTES:
            break
        if now - used > _RECENT_S and _remove(entry, idle_s=now - used):
            total -= size


def _last_change(folder: Path) -> float:
    return max(p.lstat().st_mtime for p in (folder, *folder.rglob("*")))


def _sweep_unfinished(folder: Path, idle_s: float) -> None:
    if idle_s <= _ABANDONED_S:
        return
    with removable(folder, partial=True) as state:
        # Without a lock file, the writer has not started or has finished.
        lost = state is LockState.UNKNOWN and not (folder / WRITING).exists()
        if state is LockState.FREE or lost or (state is LockState.UNKNOWN and idle_s > _FORGOTTEN_S):
            shutil.rmtree(folder, ignore_errors=True)


def _remove(store: Path, idle_s: float) -> bool:
    """Remove a store unless a process reads it; returns whether it is gone."""
    with removable(store, partial=False) as state:
        if state is LockState.TAKEN or (state is LockState.UNKNOWN and idle_s <= _ABANDONED_S):
            return False
        gone = store.with_name(f".{store.name}.{os.urandom(4).hex()}.old")
        try:
            # Rename it first, so that half a store is never visible.
            store.rename(gone)
        except OSError:
            return False
        shutil.rmtree(gone, ignore_errors=True)
    return True


def stores_in(folder: Path, traces: Sequence[TraceEntity] | None = None) -> list[Store]:
    """Complete stores: `folder` itself, or those directly in it, by name.

    Parameters
    ----------
    traces
        Only stores with the names that `store_path` gives these traces, because a cache may have thousands.
    """
    if (folder / "manifest.json").is_file():
        return list(_opened([folder]))
    try:
        below = sorted(p for p in folder.iterdir() if (p / "manifest.json").is_file())
    except OSError:
        return []
    if traces is not None:
        # Everything but digest and version.
        begin = tuple({store_path(folder, Path(t.path).name, "").name.rpartition("--v")[0] + "-" for t in traces})
        below = [p for p in below if p.name.startswith(begin)]
    return list(_opened(below))


def _opened(places: Sequence[Path]) -> Iterator[Store]:
    for place in places:
        try:
            yield open_store(place)
        except StoreError:
            continue


def store_of(trace: TraceEntity, stores: Sequence[Store]) -> Store | None:
    """The store of a profile's trace: the same calls of the same functions, preferably from the same place or name."""
    same = [
        s
        for s in stores
        if s.manifest.ranks == trace.ranks
        and s.manifest.records == trace.records
        and s.manifest.functions == trace.functions
    ]
    name = Path(trace.path).name
    same.sort(key=lambda s: (s.manifest.source != trace.path, Path(s.manifest.source).name != name))
    return same[0] if same else None


def store_with(file: Path) -> Path | None:
    """The store that a file belongs to, or would belong to because of its name; None if there is none."""
    if file.name != "manifest.json" and file.suffix != ".parquet":
        return None
    for folder in (file.parent, file.parent.parent):
        if (folder / "manifest.json").is_file() and (folder / "calls").is_dir():
            return folder
    return None
