"""`vani plan job --check`: whether a compute node sees everything that the hook writes."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from vani.centre.plan.inputs import refuse_old
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.pools import pools_of, sharing_settings
from vani.centre.plan.running_jobs import library_path
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.prolog.state import is_number, number_of
from vani.errors import InputError
from vani.units import counted

_EXPORT: Final = re.compile(r"export [A-Z_]+=[^\n]*")
_TASK_PROLOG_S: Final = 10.0
_SAME_PLACE: Final = "copy it to the same place on all nodes, or export it to them"
_SEE_KNOWN: Final = "see --known in `vani plan job --help`"


@dataclass(frozen=True)
class NodeCheck:
    """A requirement of the hook, and its result on this node; `is_sound` is None if it could not be tested."""

    name: str
    is_sound: bool | None
    line: str


def check_node(
    folder: Path,
    rules: SharingRules,
    *,
    environment: Mapping[str, str],
    max_age_s: float,
    task_prolog: Path | None = None,
    now: datetime | None = None,
) -> list[NodeCheck]:
    """Test the requirements of the hook on a compute node, without writing anything.

    Parameters
    ----------
    folder
        Folder of the hook's state.
    environment
        Environment variables of a task; within a job, its plan and its map are checked as well.
    max_age_s
        Maximum age of a snapshot in seconds.
    task_prolog
        The task prolog script, which is run for a job that has a plan.
    """
    checks = [
        _tried("state", lambda: _state(folder)),
        _tried("state is safe", lambda: _safe(folder)),
    ]
    if rules.settings is not None:
        checks.append(_tried("settings", lambda: _settings(rules)))
    checks.append(_tried("I/O nodes", lambda: _pools(rules)))
    for place in _snapshots(rules):
        checks.append(_tried("snapshot", partial(_snapshot, place, max_age_s, now or datetime.now(UTC))))
    if rules.known is not None:
        checks.append(_tried("known jobs", lambda: _known(rules.known)))
    if rules.place_library is not None:
        checks.append(_tried("placement library", lambda: _library(rules.place_library)))
    if task_prolog is not None:
        checks.append(_tried("task-prolog", lambda: _task_prolog(task_prolog, folder)))
    checks.append(_tried("this job", lambda: _own_job(folder, environment)))
    return checks


def _tried(name: str, check: Callable[[], str]) -> NodeCheck:
    """Run a check and return its result; the check raises LookupError if there is nothing to test."""
    try:
        return NodeCheck(name, True, check())
    except LookupError as error:
        return NodeCheck(name, None, str(error.args[0]))
    except InputError as error:
        return NodeCheck(name, False, str(error))
    except OSError as error:
        return NodeCheck(name, False, f"{error.filename}: {error.strerror}")


def _state(folder: Path) -> str:
    jobs = [name for name in os.listdir(folder / "jobs") if is_number(name)]  # noqa: PTH208
    plans = [place for place in folder.glob("*.env") if is_number(place.stem)]
    for place in plans:
        place.read_bytes()
    return f"{folder}: {counted(len(jobs), 'job')} running, {counted(len(plans), 'plan')}"


def _safe(folder: Path) -> str:
    """Check who may write to the folder: these users decide the environment of all jobs' tasks."""
    for place in (folder, folder / "jobs"):
        status = place.stat()
        if status.st_mode & stat.S_IWOTH:
            raise InputError("is writable by everyone", where=place, todo=f"chmod o-w {place}")
        if os.geteuid() not in (0, status.st_uid) and os.access(place, os.W_OK):
            raise InputError("is writable by this user", where=place, todo="make it writable by the prolog's user only")
    owner = folder.stat().st_uid
    with suppress(ImportError, KeyError):
        import pwd  # noqa: PLC0415 - not on every system

        return f"only {pwd.getpwuid(owner).pw_name} and its group may write there"
    return f"only user {owner} and its group may write there"


def _settings(rules: SharingRules) -> str:
    settings = sharing_settings(rules)
    return f"{rules.settings}: {counted(len(settings.pools), 'pool')}, weights of {len(settings.weights):,} QOS"


def _pools(rules: SharingRules) -> str:
    pools = pools_of(rules)
    parts = (
        f"{len(pool.working):,} of {counted(len(pool.numbers), 'I/O node')}" + (f" ({pool.name})" if pool.name else "")
        for pool in pools
    )
    return f"{', '.join(parts)} can be assigned"


def _snapshots(rules: SharingRules) -> list[Path]:
    places = [] if rules.snapshot is None else [rules.snapshot]
    if rules.settings is not None:
        with suppress(InputError):  # A separate check reports what is wrong with the file.
            folder = rules.settings.parent
            places += [folder / pool.snapshot for pool in sharing_settings(rules).pools if pool.snapshot is not None]
    return list(dict.fromkeys(places))


def _snapshot(place: Path, max_age_s: float, now: datetime) -> str:
    snapshot = Snapshot.load(place)
    if snapshot.time is None:
        raise InputError("contains no time of its load", where=place, todo="let `vani plan snapshot` write it")
    refuse_old(snapshot, max_age_s, now, str(place))
    taken = snapshot.time if snapshot.time.tzinfo is not None else snapshot.time.replace(tzinfo=UTC)
    return f"{place}: {(now - taken).total_seconds():.0f} s old"


def _known(folder: Path | None) -> str:
    assert folder is not None
    if not folder.is_dir():
        raise InputError("no such folder: no job is known", where=folder, todo=_SEE_KNOWN)
    number = sum(1 for _ in folder.rglob("*.yaml"))
    if not number:
        raise InputError("no documents: no job is known", where=folder, todo=_SEE_KNOWN)
    return f"{folder}: {counted(number, 'document')}"


def _library(path: str | None) -> str:
    place = Path(library_path(path) or "")
    if not place.is_file():
        raise InputError("is not here", where=place, todo="install it in the same folder on all nodes")
    return str(place)


def _task_prolog(script: Path, folder: Path) -> str:
    if not os.access(script, os.X_OK):
        raise InputError("does not exist here, or cannot be run", where=script, todo=_SAME_PLACE)
    number = next(_planned(folder), None)
    if number is None:
        raise LookupError("no job has a plan: start a job, and check again")
    try:
        done = subprocess.run(
            [script],
            env={"SLURM_JOB_ID": number, "SLURM_PROCID": "0"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TASK_PROLOG_S,
        )
    except subprocess.TimeoutExpired:
        what = f"did not finish within {_TASK_PROLOG_S:g} s"
        raise InputError(what, where=script, todo="see the state's folder") from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines or not all(map(_EXPORT.fullmatch, lines)):
        what = f"prints no `export` lines for job {number}"
        raise InputError(what, where=script, todo="see VANI_STATE in its vani.conf")
    return f"{script}: prints {counted(len(lines), 'variable')} for job {number}"


def _planned(folder: Path) -> Iterator[str]:
    return (place.stem for place in folder.glob("*.env") if is_number(place.stem))


def _own_job(folder: Path, environment: Mapping[str, str]) -> str:
    try:
        number = number_of(environment)
    except InputError:
        what = "this is not a job: run it inside a job, with srun, to check its plan and map"
        raise LookupError(what) from None
    plan = folder / f"{number}.yaml"
    if not plan.is_file():
        raise InputError("is not here", where=plan, todo="see the log of the prolog")
    if environment.get("VANI_PLAN") != str(plan):
        what = f"VANI_PLAN is {environment.get('VANI_PLAN') or 'not set'}, not {plan}"
        raise InputError(what, where="environment", todo="see TaskProlog in slurm.conf")
    libraries = environment.get("LD_PRELOAD", "").split(":") if environment.get("VANI_PLACE_DB") else []
    for name, place in (
        ("VANI_PLACE_DB", environment.get("VANI_PLACE_DB")),
        ("ROMIO_HINTS", environment.get("ROMIO_HINTS")),
        *(("LD_PRELOAD", library) for library in libraries if library.startswith("/")),
    ):
        if place and not os.access(place, os.R_OK):
            raise InputError(f"does not exist here, or cannot be read ({name})", where=place, todo=_SAME_PLACE)
    named = environment.get("VANI_FORWARDING_MAP")
    if not named:
        return f"{number}: VANI_PLAN is set, and it needs no forwarding map"
    host = socket.gethostname().partition(".")[0]
    lines = [line.split() for line in Path(named).read_text().splitlines()]
    node = next((words[1] for words in lines if len(words) == 2 and words[0].partition(".")[0] == host), None)
    if node is None:
        own = environment.get("SLURMD_NODENAME", host)
        what = f"has no line for {host}" + ("" if own == host else f", which Slurm calls {own}")
        raise InputError(what, where=named, todo="clients of GekkoFWD look for the name of their host: use it in Slurm")
    return f"{number}: its map assigns {host} to I/O node {node}"
