"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vani.errors import InputError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
"""What goes wrong with a place to write, not with what is written there."""

__all__ = ["new_directory", "write_bytes", "write_text", "write_together"]

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_ATTEMPTS = 100


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path` by `text` (UTF-8) in one step.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path` by `content` in one step; see `write_text`."""
    if path.exists() and not path.is_file():
        # A device or a pipe (`-o /dev/stdout`) has no "in one step", and must not be replaced.
        if path.is_dir():
            raise InputError("is a directory, not a file to write", where=path, todo="name a file")
        path.write_bytes(content)
        return
    _replace({path: _partial(path, content)})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Replace several files; where the content of one cannot be written, all stay as they are.

    Raises
    ------
    InputError
        One of them cannot be written.
    """
    partial: dict[Path, str] = {}
    try:
        for path, content in contents.items():
            if not path.exists() or path.is_file():
                partial[path] = _partial(path, content)
        # Devices and pipes take nothing back, so they come when all else is known to fit.
        for path, content in contents.items():
            if path not in partial:
                try:
                    write_bytes(path, content)
                except OSError as error:
                    raise InputError(
                        f"cannot be written ({error.strerror})", where=path, todo="name another file"
                    ) from error
    except BaseException:
        for name in partial.values():
            Path(name).unlink(missing_ok=True)
        raise
    _replace(partial)


def _partial(path: Path, content: bytes) -> str:
    """Write a file beside `path`, which is to take its place; returns its name."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write here ({error.strerror})",
            where=path,
            todo="name a folder that exists and is writable",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # noqa: PTH101 - mkstemp makes files that only their owner reads
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(
            f"cannot write here ({error.strerror})", where=path, todo="free some space or name another folder"
        ) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return name


def _replace(partial: Mapping[Path, str]) -> None:
    """Give what `_partial` wrote the names that it is for."""
    try:
        for path, name in partial.items():
            try:
                os.replace(name, path)  # noqa: PTH105
            except OSError as error:
                raise InputError(
                    f"cannot write here ({error.strerror})", where=path, todo="name another folder"
                ) from error
    finally:
        for name in partial.values():
            Path(name).unlink(missing_ok=True)


def _put(new: Path, path: Path) -> None:
    """Give a folder the name `path`, in place of what has it; others may be doing the same."""
    gone: list[Path] = []
    try:
        for attempt in range(_ATTEMPTS):
            try:
                os.replace(new, path)  # noqa: PTH105
                return
            except OSError as error:
                if error.errno not in _TAKEN or attempt == _ATTEMPTS - 1:
                    raise
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
            gone.append(old)
            with suppress(FileNotFoundError):
                os.replace(path, old / path.name)  # noqa: PTH105
    finally:
        # Later, so that the name stands for nothing for as short as can be.
        for old in gone:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a fresh folder beside `path` that becomes `path` when the block ends without an error.

    What was at `path` before is replaced; after an error or a kill it is still there, and what was
    begun lies in a folder named `.<name>.*.partial` that nothing reads.

    Raises
    ------
    InputError
        The folder above does not exist or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    except OSError as error:
        raise InputError(
            f"cannot write here ({error.strerror})", where=path, todo="name a folder that is writable"
        ) from error
    try:
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        yield partial
        _put(partial, path)
    except OSError as error:
        _drop(partial)
        if error.errno not in _NO_ROOM:
            raise
        raise InputError(
            f"cannot write here ({error.strerror})", where=path, todo="free some space or name another folder"
        ) from error
    except BaseException:
        _drop(partial)
        raise


def _drop(folder: Path) -> None:
    """Remove a folder into which others may still be writing."""
    gone = folder.with_suffix(".old")
    # Under another name, so that what they begin next finds no place.
    with suppress(OSError):
        folder = folder.rename(gone)
    shutil.rmtree(folder, ignore_errors=True)
