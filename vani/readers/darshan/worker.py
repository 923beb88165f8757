"""Reads logs with PyDarshan, in a process of its own: `python -m vani.readers.darshan.worker IN OUT`.

PyDarshan ends the interpreter on some damaged logs. The names of logs come through the pipe IN; for each, OUT gets
JSON (a dictionary with `error`, or with what the log tells) and, where there was no error, arrays as numpy writes them.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

__all__ = ["MODULES", "main"]

MODULES = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
"""Modules whose records are counters."""
_MOST_MEMORY = 8 << 30


def main(incoming: int, outgoing: int) -> None:
    """Answer until the other end of the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    names, answers = Connection(incoming, writable=False), Connection(outgoing, readable=False)
    while True:
        try:
            path = names.recv_bytes().decode(errors="surrogateescape")
        except EOFError:
            return
        try:
            told, arrays = _read(path)
        except Exception as error:
            answers.send_bytes(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
            continue
        answers.send_bytes(json.dumps(told).encode())
        answers.send_bytes(arrays)


def _read(path: str) -> tuple[dict[str, Any], bytes]:
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(path)
    if not log["handle"]:
        raise ValueError("PyDarshan cannot open it")
    try:
        modules = backend.log_get_modules(log)
        told = {
            "job": backend.log_get_job(log),
            "exe": backend.log_get_exe(log),
            "mounts": backend.log_get_mounts(log),
            "partial": sorted(name for name, one in modules.items() if one["partial_flag"]),
            "modules": sorted(modules),
            "counters": {},
        }
        names = backend.log_get_name_records(log)
        told["names"] = list(names.values())
        arrays = {"ids": np.array(list(names), np.uint64)}
        for module in MODULES:
            if module not in modules:
                continue
            records = []
            while (record := backend.log_get_record(log, module, dtype="numpy")) is not None:
                records.append(record)
            told["counters"][module] = [backend.counter_names(module), backend.fcounter_names(module)]
            of_file = "file_rec_id" if module in ("H5D", "PNETCDF_VAR") else "id"
            arrays |= {
                f"{module}.id": np.array([r[of_file] for r in records], np.uint64),
                f"{module}.rank": np.array([r["rank"] for r in records], np.int64),
                f"{module}.counters": np.array([r["counters"] for r in records], np.int64),
                f"{module}.fcounters": np.array([r["fcounters"] for r in records], np.float64),
            }
    finally:
        backend.log_close(log)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return told, packed.getvalue()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
