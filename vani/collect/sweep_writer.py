"""A process that writes as `stripe_sweep.py` requests: `python sweep_writer.py CONTROL`.

Many of them start at once on several nodes, so it is run as a file and imports only the standard library. CONTROL
contains the address of the sweep, and a secret. Messages are lines of JSON; without a connection, the process ends.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

JSON = "utf-8"

_SIZES = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE",
    "JSM_NAMESPACE_SIZE",
    "SLURM_STEP_NUM_TASKS",
)
_FLUSH_EVERY = 256 << 20
"""Bytes between flushes: data that waits in memory when time is up must still be written."""


def size_of_launch(environment: "Mapping[str, str]") -> int | None:
    """The number of processes that a launcher started, according to its variables."""
    values = (environment.get(variable, "") for variable in _SIZES)
    return next((int(value) for value in values if value.isdecimal()), None)


def write(file: int, task: "Mapping[str, Any]", limit_s: float) -> int:
    """Write pieces of a file until they are done or time is up, and flush them; returns the bytes."""
    # Random data, because some file systems compress.
    piece = os.urandom(task["piece"])
    moved, deadline = 0, time.monotonic() + limit_s
    for number in range(task["pieces"]):
        if time.monotonic() >= deadline:
            break
        moved += os.pwrite(file, piece, task["begin"] + number * task["step"])
        if moved % _FLUSH_EVERY < len(piece):
            os.fdatasync(file)
    os.fsync(file)
    return moved


def _connected(control: "Mapping[str, Any]") -> socket.socket:
    error: OSError | None = None
    for host in control["hosts"]:
        try:
            return socket.create_connection((host, control["port"]), timeout=20)
        except OSError as failed:
            error = failed
    raise SystemExit(f"no connection to {control['hosts'][0]}: {error}")


def _serve(lines: "Any") -> None:
    for line in lines:
        task = json.loads(line)
        file = -1
        try:
            file = os.open(task["path"], os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            _send(lines, {"ready": True})
            begin = lines.readline()
            if not begin:
                return
            moved = write(file, task, json.loads(begin)["limit_s"])
            os.close(file)
            file = -1
            _send(lines, {"moved": moved})
        except OSError as error:
            _send(lines, {"error": error.strerror or str(error)})
        finally:
            if file >= 0:
                os.close(file)


def _send(lines: "Any", message: "Mapping[str, Any]") -> None:
    lines.write(json.dumps(message) + "\n")
    lines.flush()


if __name__ == "__main__":
    control = json.loads(Path(sys.argv[1]).read_text(encoding=JSON))
    with _connected(control) as connection:
        connection.settimeout(None)
        stream = connection.makefile("rw", encoding=JSON)
        _send(stream, {"secret": control["secret"], "host": socket.gethostname(), "size": size_of_launch(os.environ)})
        _serve(stream)
