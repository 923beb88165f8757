"""The records of a log, as PyDarshan's worker process delivers them."""

from __future__ import annotations

import atexit
import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.errors import InputError, TraceError, one_line

__all__ = ["WORKER", "Module", "Records", "read_records", "refuse_impossible"]

_SECONDS = 300
"""For one log, and the start of the process."""


@dataclass(frozen=True)
class Module:
    """Records of a module, a row each."""

    id: NDArray[np.uint64]
    """Id of the file in the log."""
    rank: NDArray[np.int64]
    counters: Mapping[str, NDArray[np.int64]]
    times: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Records:
    """Content of a log."""

    version: str
    exe: str
    ranks: int
    start_s: float
    end_s: float
    mounts: Sequence[tuple[str, str]]
    partial: Sequence[str]
    """Modules of which records were dropped while the program ran."""
    ids: NDArray[np.uint64]
    names: Sequence[str]
    modules: Mapping[str, Module]
    layouts: Mapping[str, NDArray[Any]] | None = None
    """By name of `LUSTRE_COMP_*`, and `id` of the file: components, a row each; None without that module."""
    calls: Mapping[str, NDArray[Any]] | None = None
    """Calls of DXT: `id`, `rank`, `writes` and `reads` (how many) of each record; `offset`, `length`, `start`, `end`
    (seconds) of its writes and then its reads, record after record."""
    hosts: Sequence[str] = ()
    """Host of each record of DXT."""
    heat: Mapping[str, NDArray[Any]] | None = None
    """`id`, `rank` and `width` (seconds) of each record; `read` and `write`, shape (records, bins)."""
    user: int | None = None
    job_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Notes in the log's header: `lib_ver`, `h` (hints), and what a site adds."""
    targets: Mapping[str, NDArray[Any]] | None = None
    """Targets of Lustre: `id` of a file and `target`, the number of an OST that it is on; a row each."""


class _Worker:
    """A process that is started on first use, and again after it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._names: Connection | None = None
        self._answers: Connection | None = None
        self._lock = threading.Lock()

    def ask(self, path: Path) -> tuple[dict[str, Any], bytes]:
        """Raises TraceError where the process dies of the log, takes too long, or says that it cannot read it."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                try:
                    self._start()
                except OSError as error:
                    raise InputError(
                        f"the process that reads Darshan logs cannot be started ({error.strerror})",
                        where=path,
                        todo="raise the limit of processes (ulimit -u), or free memory",
                    ) from error
            assert self._names is not None
            assert self._answers is not None
            try:
                self._names.send_bytes(os.fsencode(path))
                if not self._answers.poll(_SECONDS):
                    raise _unread(path, f"it takes longer than {_SECONDS} s")
                answer = json.loads(self._answers.recv_bytes())
                if "error" in answer:
                    raise _unread(path, one_line(answer["error"]))
                return answer, self._answers.recv_bytes()
            except (EOFError, OSError) as error:
                raise _unread(path, "it ends on this log") from error
            finally:
                if sys.exc_info()[0] is not None:
                    self.stop()

    def _start(self) -> None:
        self.stop()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            # Without -P, modules would be looked for in the working directory first, which may be that of a trace.
            [sys.executable, "-P", "-m", "vani.readers.darshan.worker", str(theirs_in), str(theirs_out)],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._names, self._answers = Connection(ours_out, readable=False), Connection(ours_in, writable=False)

    @property
    def process(self) -> int | None:
        """Process id; None where there is none."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        """End the process, if there is one."""
        for end in (self._names, self._answers):
            if end is not None:
                end.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._names = self._answers = None


WORKER = _Worker()
"""Reads all logs of this process: it starts once, which takes longer than most logs."""
atexit.register(WORKER.stop)


def _unread(path: Path, why: str) -> TraceError:
    return TraceError(
        f"PyDarshan cannot read this log: {why}",
        where=path,
        todo="copy it once more from where Darshan wrote it, or leave it out",
    )


def read_records(path: Path) -> Records:
    """Read the log, whose regions were checked before.

    Raises
    ------
    InputError
        PyDarshan is not installed.
    TraceError
        The log cannot be read, or claims something impossible.
    """
    if importlib.util.find_spec("darshan") is None:
        raise InputError(
            "is a Darshan log, which takes PyDarshan to read",
            where=path,
            todo="pip install 'vani-io[darshan]'",
        )
    answer, packed = WORKER.ask(path)
    arrays = np.load(io.BytesIO(packed), allow_pickle=False)
    job = answer["job"]
    modules = {}
    for name, (integers, floats) in answer["counters"].items():
        counters = arrays[f"{name}.counters"].reshape(-1, len(integers))
        times = arrays[f"{name}.fcounters"].reshape(-1, len(floats))
        modules[name] = Module(
            arrays[f"{name}.id"],
            arrays[f"{name}.rank"],
            {column: counters[:, i] for i, column in enumerate(integers)},
            {column: times[:, i] for i, column in enumerate(floats)},
        )
    records = Records(
        version=job["log_ver"],
        exe=answer["exe"],
        ranks=job["nprocs"],
        start_s=job["start_time_sec"] + job["start_time_nsec"] / 1e9,
        end_s=job["start_time_sec"] + job["start_time_nsec"] / 1e9 + job["run_time"],
        mounts=[(place, kind) for place, kind in answer["mounts"]],
        partial=answer["partial"],
        ids=arrays["ids"],
        names=answer["names"],
        modules=modules,
        layouts=_under("LUSTRE", arrays),
        calls=_under("DXT", arrays),
        hosts=answer.get("hosts", ()),
        heat=_under("HEATMAP", arrays),
        user=job["uid"],
        job_id=job["jobid"],
        metadata=dict(answer["metadata"]),
        targets=_under("TARGETS", arrays),
    )
    refuse_impossible(path, records)
    return records


def _under(module: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]] | None:
    of_module = {name.partition(".")[2]: arrays[name] for name in arrays if name.startswith(f"{module}.")}
    return of_module or None


_MOST_RANKS = 1 << 24
_MOST_SECONDS = 1e9


def _impossible(path: Path, fault: str) -> TraceError:
    return TraceError(
        f"is a damaged Darshan log: {fault}",
        where=path,
        todo="copy it once more from where Darshan wrote it, or leave it out",
    )


def refuse_impossible(path: Path, records: Records) -> None:
    """Raise TraceError where a log claims something that no run can do."""
    if not 0 < records.ranks <= _MOST_RANKS:
        raise _impossible(path, f"it claims {records.ranks:,} processes")
    if not 0 <= records.end_s - records.start_s <= _MOST_SECONDS:
        raise _impossible(path, f"it claims to have run for {records.end_s - records.start_s:,.0f} s")
    for name, module in records.modules.items():
        if len(module) and not (int(module.rank.min()) >= -1 and int(module.rank.max()) < records.ranks):
            raise _impossible(
                path, f"{name} has a record of rank {int(module.rank.max()):,} of {records.ranks:,}"
            )
