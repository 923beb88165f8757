"""strace logs: system calls as text, one per line."""

import re
from pathlib import Path

from vani.readers.files import files_of, head_of

MARK = "vani-trace.json"
"""File that `vani trace` writes next to one run's logs."""
SUFFIX = ".strace"

_HEAD = 1 << 16
_LINE = (
    rb"^(?:\[pid +\d+\] +|\d+ +)?(?P<time>\d+\.\d+ |\d\d:\d\d:\d\d(?:\.\d+)? )?"
    rb"(?:[a-z_]\w*\(.*?(?:= (?:-?\d|0x|\?)|<unfinished \.\.\.>)|<\.\.\. \w+ resumed>|--- SIG\w+ |\+\+\+ )"
)
_PID = r"\.(\d+)$"
# The names that `vani.collect.tracing.rank` gives.
_RANK = rf"^rank-(\d+)(?:@(.+))?{re.escape(SUFFIX)}$"
_PROCESS = rf"^(.+)-\d+{re.escape(SUFFIX)}$"


def is_strace(path: Path) -> bool:
    """Return whether a path that the user named is an strace log, or a folder of them, damaged or not."""
    if path.is_dir():
        return (path / MARK).is_file() or bool(logs_of(path))
    return _begins_like_one(path)


def is_named_strace(path: Path) -> bool:
    """Return whether a path that the user did not name is one, judging only by names."""
    if path.is_dir():
        return (path / MARK).is_file() and bool(logs_of(path))
    return path.name.endswith(SUFFIX) and path.is_file()


def is_strace_part(name: str) -> bool:
    """Return whether a file with this name in a trace belongs to it."""
    return name == MARK or name.endswith(SUFFIX)


def logs_of(path: Path) -> list[Path]:
    """A trace's logs, in natural order.

    Raises
    ------
    TraceError
        The folder cannot be listed.
    """
    # `strace -ff -o NAME` writes NAME.PID.
    return files_of(path, lambda name: name.endswith(SUFFIX)) or [
        file for file in files_of(path, lambda name: bool(re.search(_PID, name))) if _begins_like_one(file)
    ]


def rank_of(log: Path) -> int | None:
    """The MPI rank of a log's processes; None if its name does not contain it."""
    match = re.match(_RANK, log.name)
    return int(match[1]) if match else None


def host_of(log: Path) -> str | None:
    """The host of a log that `vani trace` wrote for a process; None if its name does not contain it."""
    rank = re.match(_RANK, log.name)
    if rank:
        return rank[2]
    process = re.match(_PROCESS, log.name)
    return process[1] if process and (log.parent / MARK).is_file() else None


def pid_of(log: Path) -> int:
    """The process of a log's lines that do not name one; 0 if the log's name does not contain it."""
    match = re.search(_PID, log.name)
    return int(match[1]) if match else 0


def _begins_like_one(path: Path) -> bool:
    # Lines of a call's stack (strace -k) begin with " > ".
    first = [line for line in head_of(path, _HEAD).split(b"\n")[:20] if line.strip() and not line.startswith(b" > ")]
    fitting = sum(re.match(_LINE, line, re.MULTILINE) is not None for line in first)
    return bool(first) and 2 * fitting > len(first)
