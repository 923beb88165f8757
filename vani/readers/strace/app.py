"""Name of a run: its script's where an interpreter runs one, else its executable's."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from vani.readers.strace.names import plain
from vani.readers.strace.probe import MARK

__all__ = ["app_of", "command_in", "command_of", "is_interpreter", "program_behind"]

_INTERPRETER = re.compile(
    r"^(?:python|pypy|perl|ruby|node|julia|Rscript|lua|tclsh|ba|da|z|k|c|tc)?(?:sh)?[\d.]*$"
)
# Commands that only change how a program runs: their options that take the next word, and how many words of their own
# stand in front of the program.
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    name: (frozenset(options.split()), operands)
    for name, options, operands in (
        ("env", "-u --unset -C --chdir", 0),
        ("timeout", "-s --signal -k --kill-after", 1),
        ("nice", "-n --adjustment", 0),
        ("time", "-f --format -o --output", 0),
        ("numactl", "-N --cpunodebind -m --membind -C --physcpubind -i --interleave -p --preferred -w", 0),
        ("taskset", "", 1),
        ("stdbuf", "-i --input -o --output -e --error", 0),
        ("ionice", "-c --class -n --classdata", 0),
        ("chrt", "", 1),
        ("nohup", "", 0),
        ("setsid", "", 0),
    )
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def app_of(command: Sequence[str]) -> str:
    """The name of the program that a command runs; empty for no command."""
    if not command:
        return ""
    program = posixpath.basename(command[0]) or command[0]
    if not is_interpreter(program):
        return program
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            return next(words, program)
        if word == "-c":
            return program
        if word in ("-W", "-X") and program.startswith("py"):
            next(words, "")
            continue
        if not word.startswith("-"):
            return posixpath.basename(word) or program
    return program


def is_interpreter(program: str) -> bool:
    """Tell of the name of a program whether it runs scripts."""
    return bool(_INTERPRETER.match(program))


def command_in(args: str) -> list[str]:
    """The command in the arguments of an execve."""
    program, _, rest = args.partition(", [")
    words = [plain(word) for word in _TEXT.findall(rest.partition("], ")[0])]
    path = _TEXT.search(program)
    return [plain(path[1]) if path else "", *words[1:]]


def command_of(folder: Path) -> list[str]:
    """The command that `vani trace` noted beside a trace, from its program on; empty for none."""
    try:
        noted = json.loads((folder / MARK).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    words = [str(word) for word in noted] if isinstance(noted, list) else []
    return words[program_behind(words) :]


def program_behind(command: Sequence[str]) -> int:
    """The index of the word in a command line that names the program itself; 0 where nothing stands in front of it."""
    begin = at = 0
    while at < len(command) and (wrapper := _WRAPPERS.get(Path(command[at]).name)) is not None:
        options, operands = wrapper
        name = Path(command[at]).name
        at += 1
        while at < len(command) and command[at].startswith("-") and command[at] != "--":
            at += 1 + (command[at] in options)
        at += at < len(command) and command[at] == "--"
        while name == "env" and at < len(command) and _ASSIGNMENT.match(command[at]):
            at += 1
        at += operands
        if at >= len(command):
            return begin
        begin = at
    return begin
