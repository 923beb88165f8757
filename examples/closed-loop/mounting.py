"""Mounts the file systems in this folder temporarily, each in its own process. Needs Linux with FUSE and `mfusepy`."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vani.errors import InputError


def impossible() -> str:
    """Why file systems cannot be mounted here; empty if they can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or not for this user"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is not installed (Debian: apt install fuse3)"
    try:
        import mfusepy  # noqa: F401, PLC0415 - libfuse is looked up on import
    except (ImportError, OSError) as error:
        return f"mfusepy cannot be imported ({error})"
    return ""


@contextmanager
def served(mount: Path, module: str, *arguments: str) -> Iterator[Path]:
    """Mount the file system of a module in this folder at `mount` for the duration of a block.

    Raises
    ------
    InputError
        The file system does not start.
    """
    command = [sys.executable, str(Path(__file__).with_name(f"{module}.py")), str(mount), *arguments]
    # A session of its own, so that it can change its priority.
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(100):
            if os.path.ismount(mount):
                break
            if server.poll() is not None:
                raise InputError(
                    f"did not start (status {server.returncode})", where=module, todo="look whether FUSE works here"
                )
            time.sleep(0.1)
        yield mount
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=False)
        server.terminate()
        server.wait(timeout=30)


@contextmanager
def mounted(machine: str, seed: int = 0) -> Iterator[Path]:
    """Mount the stand-in of a machine, with its data in memory if /dev/shm exists."""
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(prefix="vani-stand-in-") as mount,
        tempfile.TemporaryDirectory(
            prefix="vani-stand-in-", dir=memory if memory.is_dir() else None
        ) as backing,
        served(Path(mount), "striped_file_system", backing, machine, str(seed)) as place,
    ):
        yield place
