"""Files and folders that appear completely or not at all."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from vani.errors import InputError, NoRoomError, os_errors_as

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of the destination, not of the content."""

_DESCRIPTOR = re.compile(r"/dev/std(?P<name>out|err)|/(?:dev|proc/self)/fd/(?P<number>[0-9]{1,9})")

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_ATTEMPTS = 100

Made = TypeVar("Made")


def descriptor(path: Path) -> int | None:
    """The number of the open file behind a path such as `/dev/stdout`, which is written to and never replaced."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return int(match["number"]) if match["name"] is None else {"out": 1, "err": 2}[match["name"]]


def destination(path: Path) -> Path:
    """The place to which a path refers: the target if it is a link, otherwise the path itself.

    Raises
    ------
    InputError
        The link is circular.
    """
    if not path.is_symlink():
        return path
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise InputError("is a circular link", where=path, todo="name another file")
    return place


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path` with `text` (UTF-8) in one step.

    If `path` is a link, its target is replaced and the link is kept. An existing file's mode is kept.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written, or the existing file is read-only.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path` with `content` in one step; see `write_text`."""
    with new_file(path) as file:
        file.write(content)


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Replace several files; if one of them cannot be written, all are left unchanged.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    partial: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if descriptor(path) is None and (not path.exists() or path.is_file()):
                partial[path] = _partial(path, content)
        # Output to devices and pipes cannot be undone, so it comes last.
        for path, content in contents.items():
            if path not in partial:
                with os_errors_as(InputError, "cannot be written", where=path, todo="name another file"):
                    write_bytes(path, content)
    except BaseException:
        for place in partial.values():
            place.unlink(missing_ok=True)
        raise
    _replace(partial)


def refuse_read_only(path: Path) -> None:
    """Refuse to replace a file that its owner made read-only.

    Replacing a file requires no permission to write to it, and root may do anything, so this checks the mode, too.

    Raises
    ------
    InputError
        The file is read-only.
    """
    try:
        status = path.stat()
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        return
    bits = stat.S_IWUSR if status.st_uid == os.geteuid() else stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    if not status.st_mode & bits or not os.access(path, os.W_OK):
        raise InputError(
            "is read-only, and is not replaced", where=path, todo="name another file, or make it writable"
        )


def _fresh(path: Path, make: Callable[[Path], Made], suffix: str) -> tuple[Made, Path]:
    """Create something next to `path` under an unused name, `.<name>.*<suffix>`."""
    for _ in range(_ATTEMPTS - 1):
        name = path.with_name(f".{path.name}.{os.urandom(4).hex()}{suffix}")
        with suppress(FileExistsError):
            return make(name), name
    name = path.with_name(f".{path.name}.{os.urandom(8).hex()}{suffix}")
    return make(name), name


def _fresh_directory(path: Path, suffix: str) -> Path:
    return _fresh(path, Path.mkdir, suffix)[1]


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces the one at `path` when the block ends without an error; see `write_text`.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written, the existing file is read-only, or there is no room.
    """
    handle = descriptor(path)
    if handle is not None:
        with os.fdopen(os.dup(handle), "wb") as opened:
            yield opened
        return
    if path.exists() and not path.is_file():
        # A device or pipe (`-o /dev/stdout`) cannot be replaced in one step, so it is written to.
        if path.is_dir():
            raise InputError("is a directory, not a file to write", where=path, todo="name a file")
        with path.open("wb") as opened:
            yield opened
        return
    with _written(path) as (file, partial):
        yield file
    _replace({path: partial})


def _partial(path: Path, content: bytes) -> Path:
    """Write a file next to the one to which `path` refers, for which it will be exchanged."""
    with _written(path) as (file, partial):
        file.write(content)
    return partial


@contextmanager
def _written(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file next to the one to which `path` refers, and its place; removed after an error."""
    file, partial = _new_partial(path)
    try:
        with file:
            yield file, partial
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno not in _NO_ROOM:
            raise
        todo = "free some space or name another folder"
        raise InputError(f"cannot write here ({error.strerror})", where=path, todo=todo) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _new_partial(path: Path) -> tuple[IO[bytes], Path]:
    """A new file next to the one to which `path` refers, with the latter's mode."""
    refuse_read_only(path)
    place = destination(path)
    with os_errors_as(
        InputError, "cannot write here", where=path, todo="name a folder that exists and is writable"
    ):
        # Created like any new file, so that the masks of the process and the folder determine its mode.
        file, partial = _fresh(place, lambda name: name.open("xb"), ".partial")
    try:
        _keep_mode(file.fileno(), place)
    except BaseException:
        file.close()
        partial.unlink(missing_ok=True)
        raise
    return file, partial


def _keep_mode(handle: int, place: Path) -> None:
    """Give a file the owner, group and mode of the one that it will replace, as far as this user is allowed to."""
    try:
        old = place.stat()
    except OSError:
        return
    new = os.fstat(handle)
    if old.st_gid != new.st_gid:
        with suppress(OSError):
            os.fchown(handle, -1, old.st_gid)
    if old.st_uid != new.st_uid:
        with suppress(OSError):
            os.fchown(handle, old.st_uid, -1)
    os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def _replace(partial: Mapping[Path, Path]) -> None:
    """Rename the files written by `_partial` to their final names."""
    try:
        for path, written in partial.items():
            with os_errors_as(InputError, "cannot write here", where=path, todo="name another folder"):
                written.replace(destination(path))
    finally:
        for written in partial.values():
            written.unlink(missing_ok=True)


def _install(new: Path, path: Path) -> None:
    """Rename a folder to `path`, replacing any existing one, while other processes may do the same."""
    gone: list[Path] = []
    try:
        for attempt in range(_ATTEMPTS):
            try:
                os.replace(new, path)  # noqa: PTH105
                return
            except OSError as error:
                if error.errno not in _TAKEN or attempt == _ATTEMPTS - 1:
                    raise
            old = _fresh_directory(path, ".old")
            gone.append(old)
            with suppress(FileNotFoundError):
                os.replace(path, old / path.name)  # noqa: PTH105
    finally:
        # Remove old folders last, so that the name is missing as briefly as possible.
        for old in gone:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_directory(path: Path, *, unless: Callable[[], bool] = bool) -> Iterator[Path]:
    """Yield a new folder next to `path` that becomes `path` when the block ends without an error.

    The previous content of `path` is replaced. After an error or a kill it is still there, and the
    unfinished folder is called `.<name>.*.partial`, which nothing reads. If `path` is a link, its target is
    replaced and the link is kept.

    Parameters
    ----------
    unless
        Called when the block has ended: if it returns true, the content of `path` is kept, and the new folder is
        dropped.

    Raises
    ------
    InputError
        The parent folder does not exist or cannot be written; a `NoRoomError` if there is no room.
    """
    place = destination(path)
    with os_errors_as(NoRoomError, "cannot write here", where=path, todo="name a folder that is writable"):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = _fresh_directory(place, ".partial")
    try:
        yield partial
        if unless():
            _drop(partial)
        else:
            _install(partial, place)
    except OSError as error:
        _drop(partial)
        if error.errno not in _NO_ROOM:
            raise
        # Libraries use longer messages.
        why = os.strerror(error.errno)
        raise NoRoomError(
            f"cannot write here ({why})", where=path, todo="free some space or name another folder"
        ) from error
    except BaseException:
        _drop(partial)
        raise


def _drop(folder: Path) -> None:
    """Remove a folder into which other processes may still be writing."""
    gone = folder.with_suffix(".old")
    # Rename it first, so that their next files cannot be created in it.
    with suppress(OSError):
        folder = folder.rename(gone)
    shutil.rmtree(folder, ignore_errors=True)
