"""Open a log of any version."""

from __future__ import annotations

from pathlib import Path

from vani.readers.darshan.log import Log
from vani.readers.darshan.old_log import OldLog
from vani.readers.darshan.regions import LogFile

__all__ = ["open_log"]


def open_log(path: Path) -> Log:
    """Open a log and inflate it.

    Raises
    ------
    UnknownFormatError
        It is no log, or of a version that is not read.
    TraceError
        It is damaged, or claims something impossible.
    """
    file = LogFile(path)
    return Log(file) if file.old_version is None else OldLog(file)
