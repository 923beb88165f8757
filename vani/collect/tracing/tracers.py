"""The libraries of Recorder and DFTracer for preloading, and the logs that Darshan wrote for a run: where they are.

The libraries are where the user names them, or where builds, pip, conda, Spack and modules install them.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from getpass import getuser
from glob import escape
from pathlib import Path

from vani.collect.node import NoAnswer, ask
from vani.errors import InputError

_RECORDER = "librecorder.so"
_BELOW = (
    "", "lib/", "lib64/", "build/lib/", "build/bin/",
    "lib/python3*/site-packages/dftracer/lib*/", "lib64/python3*/site-packages/dftracer/lib*/",
)  # fmt: skip
"""Folders below an installation, a build and a Python environment."""
_NAMED = ("RECORDER_ROOT", "RECORDER_INSTALL_PATH")
"""Variables that Recorder's documentation uses, so that setting one is intentional."""
_MODULES = ("RECORDER_DIR", "RECORDER_HOME", "RECORDER_PREFIX", "RECORDER_PATH", "EBROOTRECORDER")
"""Variables that modules of sites and of EasyBuild set."""


def find_recorder(named: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Recorder's library; None if nothing names one.

    Parameters
    ----------
    named
        The library or Recorder's installation folder, as named by the user.

    Raises
    ------
    InputError
        There is none at the place named by the user, `RECORDER_ROOT` or `RECORDER_INSTALL_PATH`.
    """
    if named is not None:
        return _named(named, "--recorder")
    for variable in _NAMED:
        if value := environment.get(variable):
            return _named(Path(value), variable)
    # Recorder's tools are next to its library.
    return _library_in(_places(environment, _MODULES, ["recorder2text"]), _RECORDER)


def _places(environment: Mapping[str, str], variables: Iterable[str], tools: Iterable[str]) -> Iterator[Path]:
    """Where a library may be, by variables, by those that Spack and most modules extend, and by tools in PATH."""
    for variable in variables:
        if value := environment.get(variable):
            yield Path(value)
    for variable in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH"):
        yield from (Path(folder) for folder in environment.get(variable, "").split(":") if folder)
    for tool in tools:
        if (file := shutil.which(tool, path=environment.get("PATH"))) is not None:
            # An unresolved link to a Python is in the folder of its environment.
            yield Path(file).absolute().parent.parent


def _library_in(places: Iterable[Path], name: str) -> Path | None:
    """The first library of this name in or below these places, which may also name it themselves."""
    for place in places:
        paths = (path for form in _BELOW for path in sorted(place.glob(f"{form}{name}")))
        path = place if place.name == name else next(paths, None)
        if path is not None and path.is_file():
            return path.resolve()
    return None


def _named(place: Path, by: str) -> Path:
    if (library := place.resolve() if place.is_file() else _library_in([place], _RECORDER)) is not None:
        return library
    raise InputError(
        f"contains no {_RECORDER}, though {by} names it",
        where=place,
        todo=f"name the library, or the folder whose lib/ contains it (docs/tracing.md); without {by}, strace is used",
    )


_DFTRACER = "libdftracer_preload.so"
_DFTRACER_PREFIXES = ("DFTRACER_ROOT", "DFTRACER_DIR", "DFTRACER_PATH", "EBROOTDFTRACER", "VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that users and modules set, and those of Python environments."""


def find_dftracer(program: Sequence[str], environment: Mapping[str, str]) -> Path:
    """The library of the Python that a command runs, or else one named by the environment.

    Raises
    ------
    InputError
        There is no library.
    """
    own = _places({name: environment[name] for name in environment.keys() & {"PATH"}}, (), program[:1])
    others = _places(environment, _DFTRACER_PREFIXES, ("dftracer_run", "python3"))
    if (library := _library_in((*own, *others), _DFTRACER)) is not None:
        return library
    raise InputError(
        "DFTracer's library was not found",
        where=_DFTRACER,
        todo="pip install dftracer in the Python of the program, or name its folder in DFTRACER_ROOT",
    )


_LOG_FOLDERS = ("DARSHAN_LOGPATH", "DARSHAN_LOG_DIR_PATH")
"""Variables that name log folders: Darshan's since 3.4, and the usual ones of `--with-log-path-by-env`."""
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PJM_JOBID")
_JOB_IN_NAME = re.compile(r"_id([0-9]+)-([0-9]+)_")
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
    folders = _log_folders(environment)
    file = environment.get("DARSHAN_LOGFILE")
    if not folders and not file:
        return "no Darshan log (no DARSHAN_LOGPATH, no darshan-config)"
    candidates = [Path(file)] if file else [path for folder in folders for path in _logs_in(folder, begin_s)]
    job = next((environment[name] for name in _JOBS if environment.get(name)), "")
    # A file system may store only whole seconds.
    logs = [path for path in candidates if _is_ours(path, int(begin_s)) and not _is_of_another_job(path, job)]
    return sorted(logs) or f"Darshan wrote no log of the run in {', '.join(map(str, folders)) or file}"


def _is_of_another_job(path: Path, job: str) -> bool:
    named = _JOB_IN_NAME.search(path.name)
    number = job.partition(".")[0]
    return named is not None and number.isdecimal() and named[1] not in (number, named[2])


def _log_folders(environment: Mapping[str, str]) -> list[Path]:
    named = [environment[name] for name in _LOG_FOLDERS if environment.get(name)]
    if not named:
        try:
            named = [line for line in ask(["darshan-config", "--log-path"]).splitlines() if line.startswith("/")]
        except NoAnswer:
            return []
    return [Path(name) for name in named]


def _logs_in(folder: Path, begin_s: float) -> Iterator[Path]:
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
