"""Name of a run: its script's where an interpreter runs one, else its executable's."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from vani.readers.strace.names import plain
from vani.readers.strace.probe import MARK

__all__ = ["app_of", "command_in", "command_of"]

_INTERPRETER = re.compile(
    r"^(?:python|pypy|perl|ruby|node|julia|Rscript|lua|tclsh|ba|da|z|k|c|tc)?(?:sh)?[\d.]*$"
)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def app_of(command: Sequence[str]) -> str:
    """The name of the program that a command runs; empty for no command."""
    if not command:
        return ""
    program = posixpath.basename(command[0]) or command[0]
    if not _INTERPRETER.match(program):
        return program
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            return next(words, program)
        if word == "-c":
            return program
        if not word.startswith("-"):
            return posixpath.basename(word) or program
    return program


def command_in(args: str) -> list[str]:
    """The command in the arguments of an execve."""
    program, _, rest = args.partition(", [")
    words = [plain(word) for word in _TEXT.findall(rest.partition("], ")[0])]
    path = _TEXT.search(program)
    return [plain(path[1]) if path else "", *words[1:]]


def command_of(folder: Path) -> list[str]:
    """The command that `vani trace` noted beside a trace; empty for none."""
    try:
        noted = json.loads((folder / MARK).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [str(word) for word in noted] if isinstance(noted, list) else []
