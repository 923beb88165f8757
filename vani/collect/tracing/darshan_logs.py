"""Logs that Darshan wrote for a run: where they appear, and which of them belong to the run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from getpass import getuser
from glob import escape
from pathlib import Path

from vani.collect.probe import NoAnswer, ask

_VARIABLES = ("DARSHAN_LOGPATH", "DARSHAN_LOG_DIR_PATH")
"""Variables that name log folders: Darshan's since 3.4, and the usual ones of `--with-log-path-by-env`."""
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PJM_JOBID")
_NAMED = re.compile(r"_id([0-9]+)-([0-9]+)_")
"""Job and process in a name: `me_solver_id4242-1733_3-3-4711-1.darshan`. Without a job, Darshan uses the process id."""


def logs_since(begin_s: float, environment: Mapping[str, str]) -> list[Path] | str:
    """This user's logs that appeared since a time, only of this job if names show it.

    Parameters
    ----------
    begin_s
        Seconds since 1970.

    Returns
    -------
    Paths, or the reason for none.
    """
    folders = _folders(environment)
    file = environment.get("DARSHAN_LOGFILE")
    if not folders and not file:
        return "no Darshan log (no DARSHAN_LOGPATH, no darshan-config)"
    candidates = [Path(file)] if file else [path for folder in folders for path in _in(folder, begin_s)]
    job = next((environment[name] for name in _JOBS if environment.get(name)), "")
    # A file system may store only whole seconds.
    logs = [path for path in candidates if _is_ours(path, int(begin_s)) and not _is_of_another_job(path, job)]
    return sorted(logs) or f"Darshan wrote no log of the run in {', '.join(map(str, folders)) or file}"


def _is_of_another_job(path: Path, job: str) -> bool:
    named = _NAMED.search(path.name)
    number = job.partition(".")[0]
    return named is not None and number.isdecimal() and named[1] not in (number, named[2])


def _folders(environment: Mapping[str, str]) -> list[Path]:
    named = [environment[name] for name in _VARIABLES if environment.get(name)]
    if not named:
        try:
            named = [line for line in ask(["darshan-config", "--log-path"]).splitlines() if line.startswith("/")]
        except NoAnswer:
            return []
    return [Path(name) for name in named]


def _in(folder: Path, begin_s: float) -> Iterator[Path]:
    """This user's logs in a folder, and in the run's day folders, YEAR/MONTH/DAY, which all users share."""
    places = [folder]
    day, last = datetime.fromtimestamp(begin_s), datetime.now()
    while day.date() <= last.date():
        places.append(folder / str(day.year) / str(day.month) / str(day.day))
        day += timedelta(days=1)
    users = {os.environ.get("LOGNAME") or getuser(), getuser(), str(os.getuid())}
    for place in places:
        for user in users:
            yield from place.glob(f"{escape(user)}_*.darshan")


def _is_ours(path: Path, begin_s: float) -> bool:
    try:
        known = path.stat()
    except OSError:
        return False
    return known.st_uid == os.getuid() and known.st_mtime >= begin_s
