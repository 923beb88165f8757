"""The command of a run: from an execve, or as recorded by `vani trace`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from vani.readers.commands import program_behind
from vani.readers.strace.names import plain
from vani.readers.strace.probe import MARK

_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def command_in(args: str) -> list[str]:
    """The command in an execve's arguments."""
    program, _, rest = args.partition(", [")
    words = [plain(word) for word in _TEXT.findall(rest.partition("], ")[0])]
    path = _TEXT.search(program)
    return [plain(path[1]) if path else "", *words[1:]]


def command_of(folder: Path) -> list[str]:
    """The command that `vani trace` recorded next to a trace, starting with its program; empty if there is none."""
    try:
        noted = json.loads((folder / MARK).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    words = [str(word) for word in noted] if isinstance(noted, list) else []
    return words[program_behind(words) :]
