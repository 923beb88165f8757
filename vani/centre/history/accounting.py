r"""Jobs from Slurm's accounting, as printed by `sacct --parsable2`: a header line, then a line per job.

    sacct --allocations --parsable2 --starttime 2026-11-01 --endtime 2026-12-01 \
      --format JobIDRaw,User,Account,QOS >sacct.csv

`JobIDRaw` is each array task's own number; without it, `JobID` is used. Steps are skipped. Only the number is
required; fields may be in any order among others, with `|` or commas between them.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from vani.centre.history.rows import AccountedJob
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.errors import InputError, StoreError, one_line, refuse_named_pipe
from vani.schema.settings import PathLike

FIELDS: Final = ("JobIDRaw", "User", "Account", "QOS")
"""The fields that are read, as `sacct --format` names them; JobID is accepted as well."""

_MAX_BYTES: Final = 1 << 32
_MAX_LETTERS: Final = 200
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,19}(?:_[0-9]{1,9})?")
_STEP: Final = re.compile(r"[0-9]+(?:_[0-9]+)?[.+].*")


def read_sacct(path: Path) -> Iterator[AccountedJob | InputError]:
    """Yield the jobs of a file, and an error for each line that is not a job.

    Raises
    ------
    InputError
        The file cannot be read, or its header has no job number.
    """
    refuse_named_pipe(path)
    try:
        with path.open(encoding="utf-8", errors="backslashreplace", newline="") as file:
            if path.stat().st_size > _MAX_BYTES:
                raise InputError("is longer than 4 GiB", where=path, todo="write a month at a time")
            first = file.readline(10_000)
            separator = "|" if "|" in first else ","
            names = [name.strip().lower() for name in first.strip().split(separator)]
            place = {name: number for number, name in reversed(list(enumerate(names)))}
            key = next((name for name in ("jobidraw", "jobid") if name in place), None)
            if key is None:
                todo = f"sacct --allocations --parsable2 --format {','.join(FIELDS)}"
                raise InputError("its first line does not name JobIDRaw", where=path, todo=todo)
            # Job names may contain quotation marks, and sacct quotes nothing.
            plain: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if separator == "|" else {}
            rows = csv.reader(file, delimiter=separator, **plain)
            for row in rows:
                if not row or _STEP.fullmatch(row[min(place[key], len(row) - 1)]):
                    continue
                try:
                    yield _job(row, place, key, len(names))
                except ValueError as error:
                    yield InputError(str(error), where=f"{path}:{rows.line_num + 1}", todo="it is left out")
    except (OSError, csv.Error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({why})", where=path, todo="write it again with sacct") from error


def _job(row: list[str], place: dict[str, int], key: str, width: int) -> AccountedJob:
    if len(row) != width:
        raise ValueError(f"has {len(row):,} fields, not {width:,}")

    def text(name: str) -> str | None:
        value = one_line(row[place[name]].strip())[:_MAX_LETTERS] if name in place else ""
        return value or None

    number = text(key) or ""
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{number[:40]!r} is not a job number")
    return AccountedJob(number, text("user"), text("account"), text("qos"))


_AT_ONCE: Final = 5000


@dataclass(frozen=True)
class ImportedJobs:
    """Counts of a file's jobs: all, new ones, those with runs, and lines that are not jobs."""

    jobs: int
    new: int
    with_runs: int
    refused: int


def is_accounting_file(path: PathLike) -> bool:
    """Whether a file is text; files written by `vani history export` are SQLite's."""
    try:
        with Path(path).open("rb") as file:
            return file.read(6) != b"SQLite"
    except OSError:
        return False


def history_import_jobs(
    path: PathLike, *, db: PathLike | None = None, say: Callable[[str], None] = lambda _: None
) -> ImportedJobs:
    """Add the jobs of a file from sacct to a history, all or none; known jobs are replaced.

    Parameters
    ----------
    say
        Called with a message for each line that is not a job, which is then skipped.

    Raises
    ------
    InputError
        The file is not from sacct, or contains no job.
    StoreError
        The store is anonymised, so plain names would be mixed with hashes.
    """
    store, path, jobs, new, with_runs, refused = Store(db), Path(path), 0, 0, 0, 0
    entries = read_sacct(path)
    first = list(islice(entries, 1))  # Refuse a file that is not accounting before a database is created.
    with store.writing(make=True) as connection:
        if read.fact(connection, "names") is not None:
            todo = "import the accounting first, then anonymise again"
            raise StoreError("is anonymised", where=store.name, todo=todo)
        for some in read.pieces(chain(first, entries), _AT_ONCE):
            faults = [entry for entry in some if isinstance(entry, InputError)]
            refused += len(faults)
            for fault in faults:
                say(str(fault))
            own = [entry for entry in some if isinstance(entry, AccountedJob)]
            jobs += len(own)
            new += write.add_jobs(connection, own)
            with_runs += read.count_jobs_with_runs(connection, [job.job for job in own])
        if not jobs:
            raise InputError("has no job", where=path, todo="see `vani history import --help`")
    return ImportedJobs(jobs, new, with_runs, refused)
