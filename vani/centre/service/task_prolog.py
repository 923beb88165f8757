#!/usr/bin/python3 -IS
"""Slurm's TaskProlog: sets, once per job, the layout of its output folder and hints in its environment.

It runs as the job's user, and does nothing as root. It needs only Python's standard library.

    TaskProlog=/etc/slurm/vani-task-prolog

VANI_OUTPUT, set by the user at submission, names the job's new output folder below one that the centre has a layout
for; without it, the folder itself gets the layout. Nothing that fails here fails a job.
"""

import json
import os
import pwd
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

FOLDER = "/var/lib/vani/hook"
HINTS = ("MPICH_MPIIO_HINTS", "ROMIO_HINTS", "ROMIO_PRINT_HINTS", "HDF5_USE_FILE_LOCKING", "OMPI_MCA_io")
"""Variables that may be set; no other one ever is."""
_VALUE = re.compile(r"[\w./:,*=+@%-]{1,500}")
_OPTION = re.compile(r"-[EcS]|-?\d{1,12}[KMGT]?")
_MAX_BYTES = 1 << 16
_WAIT_S = 5


def read_state(folder: str, user: str) -> Any:
    """The user's entry, if only root or the folder's owner could have written it; raises OSError or ValueError."""
    trusted = _owner(folder)
    handle = os.open(f"{user}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=trusted)
    with os.fdopen(handle, "rb") as file:
        state, above = os.fstat(handle), os.fstat(trusted)
        os.close(trusted)
        if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o022 or state.st_uid not in (0, above.st_uid):
            raise ValueError("not a file of the centre")
        return json.loads(file.read(_MAX_BYTES))


def _owner(folder: str) -> int:
    """Open a folder, of which each part up to the root can be changed only by root or the folder's owner."""
    # Users may pass through the folder, and cannot list it.
    handle = os.open("/", os.O_PATH | os.O_DIRECTORY)
    parts = [part for part in folder.split("/") if part]
    states = []
    for part in parts:
        below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
        os.close(handle)
        handle = below
        states.append(os.fstat(handle))
    for state in states:
        if state.st_uid not in (0, states[-1].st_uid) or (state.st_mode & 0o022 and not state.st_mode & stat.S_ISVTX):
            raise ValueError("others can write to the folder")
    return handle


def set_layout(entry: Mapping[str, Any], output: str) -> None:
    """Give a folder its layout, if it belongs to this user."""
    folder, options = os.path.normpath(entry["folder"]), entry["options"]
    if not folder.startswith("/") or not all(_OPTION.fullmatch(word) for word in options):
        return
    place = os.path.normpath(output) if output else folder
    if place != folder and not place.startswith(f"{folder}/"):
        return
    if output and not os.path.lexists(place):
        os.mkdir(place)  # noqa: PTH102 - paths are texts here
    state = os.lstat(place)
    if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid():
        subprocess.run(
            ["lfs", "setstripe", *options, place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=_WAIT_S, check=False,
        )  # fmt: skip


def main(
    environment: Mapping[str, str], folder: str = FOLDER, write: Callable[[str], object] = sys.stdout.write
) -> None:
    """Set layouts and print exports, unless an earlier task of the job did."""
    if os.getuid() == 0 or environment.get("VANI_HOOK"):
        return
    write("export VANI_HOOK=1\n")
    state = read_state(folder, pwd.getpwuid(os.getuid()).pw_name)
    for name, value in state.get("hints", {}).get(environment.get("SLURM_JOB_NAME", ""), {}).items():
        if name in HINTS and name not in environment and _VALUE.fullmatch(value):
            write(f"export {name}={value}\n")
    for entry in state.get("layouts", ()) if environment.get("SLURM_PROCID", "0") == "0" else ():
        set_layout(entry, environment.get("VANI_OUTPUT", ""))


if __name__ == "__main__":
    try:
        main(dict(os.environ))
    except Exception as error:  # a job begins whatever happens here
        sys.stderr.write(f"vani: {shlex.quote(str(error))}\n" if os.environ.get("VANI_HOOK_VERBOSE") else "")
