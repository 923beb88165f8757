"""Programs that a log's processes ran, and the names of their apps.

`strace -s 0` shows only the file of an execve. An interpreter's script is therefore taken to be the first file with
a script's suffix that it opens and does not import.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import Flag
from vani.columns import to_numpy
from vani.readers.commands import SHELL_SCRIPT, app_of, is_interpreter, is_launcher
from vani.readers.strace.processes import Execution

_SCRIPT = re.compile(r"\.(?:py|pl|rb|[rR]|jl|lua|tcl)$|" + SHELL_SCRIPT)
_OF_LIBRARY = re.compile(r"/python\d|/(?:site|dist)-packages/|^/usr/(?:lib|share)|^/etc/")
_MOST_SCRIPTS = 8
"""Maximum number of an interpreter's files that may be its script."""


class Scripts:
    """Files with script suffixes that programs opened."""

    def __init__(self) -> None:
        self._like_script = np.zeros(0, np.bool_)
        """Whether each file has the suffix of a script."""
        self._opened: dict[int, list[int]] = {}
        """Files by execution, in the order in which they were opened."""

    def see(
        self, rows: pa.RecordBatch, paths: Sequence[str], execution: NDArray[np.int64], since: Sequence[int]
    ) -> None:
        """Add rows of a block (`rows.ROWS`).

        Parameters
        ----------
        paths
            Paths by code.
        execution
            By thread, the number of the program that it ran last; -1 if unknown.
        since
            Start of each program in nanoseconds.
        """
        new = [bool(_SCRIPT.search(p)) and not _OF_LIBRARY.search(p) for p in paths[len(self._like_script) :]]
        self._like_script = np.append(self._like_script, np.array(new, np.bool_))
        file, flags = to_numpy(rows.column("file")), to_numpy(rows.column("flags"))
        opens = (flags & (Flag.OPEN | Flag.WRITABLE)) == Flag.OPEN
        at = np.flatnonzero(opens & np.append(self._like_script, False)[file])
        if not len(at):
            return
        program = execution[to_numpy(rows.column("thread"))[at]]
        start = to_numpy(rows.column("start"))[at]
        for number, code, when in zip(program.tolist(), file[at].tolist(), start.tolist(), strict=True):
            files = self._opened.setdefault(number, [])
            if number >= 0 and when >= since[number] and len(files) < _MOST_SCRIPTS and code not in files:
                files.append(code)

    def by_execution(self, paths: Sequence[str]) -> dict[int, str]:
        """The script of each program that opened one."""
        cached = {_module(path) for path in paths if "/__pycache__/" in path}
        scripts = {}
        for number, files in self._opened.items():
            own = (paths[code] for code in files if posixpath.splitext(paths[code])[0] not in cached)
            scripts[number] = next(own, "")
        return scripts


def app_names(executions: Sequence[Execution], scripts: dict[int, str], command: Sequence[str]) -> list[str]:
    """The app of each program.

    Parameters
    ----------
    scripts
        Scripts of interpreters, by execution number.
    command
        The traced command as recorded by `vani trace`, with all its words, which the log lacks.
    """
    names = [posixpath.basename(execution.file) for execution in executions]
    apps = []
    for number, (name, execution) in enumerate(zip(names, executions, strict=True)):
        script = scripts.get(number, "") if is_interpreter(name) and len(execution.command) < 2 else ""
        apps.append(posixpath.basename(script) or app_of(execution.command) or name)
    first = posixpath.basename(command[0]) if command else ""
    if first in names:
        number = names.index(first)
        apps[number] = app_of(command)
        # A shim, such as pyenv's or a module's, becomes its interpreter.
        becomes = executions[number].becomes
        while becomes >= 0:
            if is_interpreter(first) and is_interpreter(names[becomes]) and not is_launcher(names[becomes]):
                apps[becomes] = app_of(command)
            becomes = executions[becomes].becomes
    return apps


def _module(path: str) -> str:
    """The source, without its suffix, of a compiled Python file: `d/__pycache__/m.cpython-311.pyc` becomes `d/m`."""
    folder, _, name = path.rpartition("/__pycache__/")
    return f"{folder}/{name.partition('.')[0]}"
