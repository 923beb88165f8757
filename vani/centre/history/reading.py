"""Makes a row of the tables from each file, in several processes. It loads no database."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pwd
import re
import signal
import threading
import zlib
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import wait
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from vani.centre.history.discovery import Candidate
from vani.centre.history.rows import Measurement, Source, StoredRun
from vani.centre.prediction.creations.extraction import creations_of_profile, creations_of_trace
from vani.centre.prediction.creations.series import Creations, pack_creations
from vani.errors import InputError, VaniError, one_line
from vani.readers.darshan import is_parser_text
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import read_records
from vani.readers.darshan.totals import Totals, read_created, read_totals, target_times
from vani.site import BUDGET

if TYPE_CHECKING:
    from vani.schema.profile import Profile

MakeProfile = Callable[[Path], "Profile"]

_MAX_LETTERS = 200
LATEST = 1 << 33
"""Latest time in seconds since 1970: the year 2242."""
MAX_INTEGER = 1 << 63
"""Databases store integers below this limit."""
_JOB = re.compile(r"_id\d+")
_NUMBER = re.compile(r"\d{1,20}(?:_\d{1,9})?(?![^.])")


@dataclass(frozen=True)
class IngestResult:
    """The result of reading a file.

    `profile` is packed, and None if totals are enough; `named` means named by the user. `creations` are their
    number and the packed creations; None if unknown. A document of `vani tune` is not a run, but has `measured`.
    """

    source: Source
    named: bool
    run: StoredRun | None = None
    profile: bytes | None = None
    creations: tuple[int, bytes] | None = None
    measured: tuple[Measurement, ...] = ()


def pack_profile(profile: Profile) -> bytes:
    """Pack a profile for storage, as deflated JSON."""
    return zlib.compress(json.dumps(profile.model_dump(by_alias=True), separators=(",", ":")).encode())


def unpack_profile(content: bytes) -> Profile:
    """Unpack a profile."""
    from vani.schema.profile import Profile  # noqa: PLC0415

    return Profile.model_validate(json.loads(zlib.decompress(content)))


def ingest_file(
    candidate: Candidate, *, make: MakeProfile, totals: bool, user: str | None, share: int | None
) -> IngestResult:
    """Read one file.

    Parameters
    ----------
    make
        Makes profiles of logs and traces.
    totals
        Read only the sums of counters from logs.
    user
        User who ran the job; None takes the one in the log or profile, or the file's owner.
    share
        Bytes of memory that one file may take.

    Raises
    ------
    InputError
        Something other than the file is missing; a fault of the file itself is returned as the reason.
    """
    source = Source(candidate.path, candidate.size, candidate.changed_ns, None, None)
    BUDGET.begin(share)
    try:
        if candidate.kind == "unreadable":
            raise InputError(candidate.problem)
        if candidate.kind == "tuned":
            from vani.centre.history.measured import measurements_in  # noqa: PLC0415 - loads the models

            rows = measurements_in(Path(candidate.path), _name(user or _owner(Path(candidate.path))))
            if not rows and candidate.named:
                raise InputError("belongs to a session that measured no setting, or continues")
            source = replace(source, digest=rows[0].digest if rows else None)
            return IngestResult(source, candidate.named, measured=tuple(rows))
        run, profile, creations = _read(candidate, make, totals=totals)
        if any(
            isinstance(value := getattr(run, name), int) and abs(value) >= MAX_INTEGER for name in StoredRun.__slots__
        ):
            raise InputError("its counts are too large to store")
    except (VaniError, OSError) as error:
        reason = error.what if isinstance(error, VaniError) else f"cannot be read ({error.strerror})"
        return IngestResult(replace(source, reason=one_line(reason)), candidate.named)
    except (ValueError, OverflowError, IndexError, MemoryError) as error:
        # An unexpected error must cost only one log.
        reason = f"cannot be read ({type(error).__name__})"
        return IngestResult(replace(source, reason=reason), candidate.named)
    if user is not None:
        run = replace(run, user=_name(user))
    packed = None if creations is None else (len(creations), pack_creations(creations))
    return IngestResult(replace(source, digest=run.digest), candidate.named, run, profile, packed)


def _read(candidate: Candidate, make: MakeProfile, *, totals: bool) -> tuple[StoredRun, bytes | None, Creations | None]:
    path = Path(candidate.path)
    if candidate.kind == "darshan":
        log = open_log(path, whole=not totals)
        records = read_records(log, for_sums=True)
        totals_of_log = read_totals(log, records)
        run = _of_totals(path, totals_of_log, target_times(records, totals_of_log.mount))
        created = read_created(records)
        creations = Creations(created.sizes, created.ranks, created.stripes, created.paths)
        return run, None if totals else _profile_if_any(path, make), creations
    if candidate.kind == "profile":
        from vani.schema.profile import Profile  # noqa: PLC0415

        profile, digest = Profile.load(path), hashlib.sha256(path.read_bytes()).hexdigest()
        of_run = creations_of_profile(profile)
    else:
        from vani.readers.open import open_trace  # noqa: PLC0415 - loads Arrow

        profile, digest = make(path), open_trace(path).digest()
        of_run = creations_of_trace(path)
        of_run = creations_of_profile(profile) if of_run is None else of_run
    run = _of_profile(profile, digest, candidate.kind, profile.job.user or _owner(path))
    if candidate.kind == "trace" and path.is_file() and is_parser_text(path):
        from vani.readers.darshan.parser_text import printed_records  # noqa: PLC0415 - few histories have such texts

        run = replace(run, target_times=target_times(printed_records(path), run.mount))
    return run, pack_profile(profile), of_run


def _profile_if_any(path: Path, make: MakeProfile) -> bytes | None:
    try:
        return pack_profile(make(path))
    except InputError:
        # Its totals are already known.
        return None


def _of_totals(path: Path, totals: Totals, times: str | None) -> StoredRun:
    words = totals.exe.split()
    program = PurePath(words[0]).name if words else ""
    user, named = _from_name(path.name, program)
    in_io = totals.read_s + totals.write_s + totals.metadata_s
    same = {name: getattr(totals, name) for name in StoredRun.__slots__ if hasattr(totals, name)}
    return StoredRun(
        **same
        | {
            "kind": "darshan", "user": _name(user or str(totals.uid)),
            "application": _name(program or named or "unknown"), "submitted": totals.start_s, "in_io_s": in_io,
            "waiting_s": totals.slowest_s * totals.processes, "file_system": _name(totals.file_system),
            "mount": _name(totals.mount), "target_times": times,
            "job": str(totals.job_id) if totals.job_id > 0 else None,
        }
    )


def _of_profile(profile: Profile, digest: str, kind: str, user: str) -> StoredRun:
    io = profile.workflow.io
    starts = [
        trace.start_unix_s for trace in profile.traces
        if trace.start_unix_s is not None and trace.start_unix_s < LATEST
    ]
    slowest = [_slowest(app.balance) for app in profile.apps]
    known = [seconds for seconds in slowest if seconds is not None]
    waiting = [s * app.processes for s, app in zip(slowest, profile.apps, strict=True) if s is not None]
    storage = profile.storage.shared
    writers = [app.balance.writing_processes for app in profile.apps if app.balance is not None]
    return StoredRun(
        digest=digest, kind=kind, user=_name(user), uid=None, application=_name(profile.application),
        processes=profile.workflow.processes, submitted=min(starts, default=None),
        runtime_s=profile.workflow.runtime_s, bytes_read=io.bytes.read, bytes_written=io.bytes.written,
        reads=io.ops.read, writes=io.ops.write, opens=None, metadata=io.ops.metadata, collective=None,
        independent=None, files=profile.workflow.files.total, shared_files=profile.workflow.files.shared,
        read_s=io.time_s.read, write_s=io.time_s.write, metadata_s=io.time_s.metadata, in_io_s=io.time_s.total,
        slowest_s=max(known, default=None), waiting_s=sum(waiting) if waiting else None,
        writers=sum(w for w in writers if w is not None) if any(w is not None for w in writers) else None,
        file_system=_name(storage.type or ""), mount=_name(storage.dir or ""), stripes=None,
        complete=all(trace.complete is not False for trace in profile.traces), target_times=None,
        job=_job(profile.job.id),
    )  # fmt: skip


def _job(name: str | None) -> str | None:
    """The job number from the name that a batch system uses: 7 from 7.server."""
    match = None if name is None else _NUMBER.match(name)
    return None if match is None else match[0]


def _slowest(balance: object) -> float | None:
    seconds = [getattr(balance, name, None) for name in ("slowest_call_time_s", "slowest_io_time_s")]
    return next((float(time) for time in seconds if time is not None), None)


def _from_name(name: str, program: str) -> tuple[str, str]:
    """User and program from Darshan's log name, `<user>_<program>_id<job>...`; empty for other names."""
    job = _JOB.search(name)
    if job is None:
        return "", ""
    begin = name[: job.start()]
    if program and begin.endswith(f"_{program}"):
        return begin[: -len(program) - 1], program
    user, _, rest = begin.partition("_")
    return (user, rest) if rest else ("", user)


def _owner(path: Path) -> str:
    owner = path.stat().st_uid
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _name(text: str) -> str:
    """A name that databases and terminals accept."""
    shown = os.fsencode(text).decode(errors="backslashreplace")
    return one_line(shown)[:_MAX_LETTERS]


def shown_path(path: str) -> str:
    """A path that databases accept: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def end_with_parent() -> None:
    """In a reading process: leave interruptions to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for, args=(parent.sentinel,), daemon=True).start()


def _wait_for(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


MANY: Final = 1000
"""Number of new logs from which on only totals are stored."""
_CHUNK: Final = 50
_FEW: Final = 4
"""The same if profiles are made, which take longer."""
_AHEAD: Final = 40
"""Number of batches read ahead while others are written; with fewer, the processes would wait for the database."""


def _read_batch(some: Sequence[Candidate], how: dict[str, Any]) -> list[IngestResult]:
    return [ingest_file(candidate, **how) for candidate in some]


def results_of(
    candidates: Sequence[Candidate], workers: int | None, *, totals: bool, **how: Any
) -> Generator[IngestResult]:
    """Read files in several processes, and yield their results in order, reading ahead only as far as needed.

    Parameters
    ----------
    totals, how
        As in `ingest_file`.
    workers
        Number of processes; None uses one per core, or only this process for few files.

    Raises
    ------
    InputError
        One of the processes was killed.
    """
    processes = workers or (len(os.sched_getaffinity(0)) if len(candidates) >= MANY else 1)
    size, ahead = (_CHUNK, max(_AHEAD, 4 * processes)) if totals else (_FEW, 4 * processes)
    reading = partial(_read_batch, how={"totals": totals, **how})
    batches = (candidates[start : start + size] for start in range(0, len(candidates), size))
    if processes == 1:
        yield from chain.from_iterable(map(reading, batches))
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)
    try:
        waiting = deque(pool.submit(reading, batch) for batch in islice(batches, ahead))
        while waiting:
            yield from waiting.popleft().result()
            waiting.extend(pool.submit(reading, batch) for batch in islice(batches, 1))
    except BrokenProcessPool as error:
        todo = "run this again: finished logs are stored; use --workers 1 if memory is short"
        raise InputError("a reading process was killed", todo=todo) from error
    finally:
        # Batches that have not started are dropped.
        pool.shutdown(wait=True, cancel_futures=True)
