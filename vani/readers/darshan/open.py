"""Open a log of any version."""

from __future__ import annotations

from pathlib import Path

from vani.readers.darshan.log import Log
from vani.readers.darshan.old_log import OldLog
from vani.readers.darshan.regions import LogFile


def open_log(path: Path, *, whole: bool = True) -> Log:
    """Open a log.

    Parameters
    ----------
    whole
        Inflate and check all of it now; otherwise each region on first use, because sums need only some of them.

    Raises
    ------
    UnknownFormatError
        The file is not a log, or of an unsupported version.
    TraceError
        The log is damaged, or claims something impossible.
    """
    file = LogFile(path)
    if file.old_version is not None:
        return OldLog(file)
    log = Log(file)
    if whole:
        log.check()
    return log
