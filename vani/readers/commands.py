"""Programs in command lines: a run's name, words before a program, and programs that only start others."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

SHELL_SCRIPT = r"\.(?:sh|bash|ksh|zsh|csh)$"
_LAUNCHER = re.compile(
    r"(?:env|ba|da|z|k|c|tc|fi)?sh|env|timeout|nice|time|numactl|taskset|stdbuf|setsid|nohup|ionice|chrt|xargs|parallel|g?make"
    r"|mpi(?:exec|run)(?:[._]\w+)*|orterun|orted|prte|prted|prun|prterun|srun|salloc|slurmstepd|jsrun|aprun|flux[\w-]*"
    r"|hydra_\w+|pmi_proxy|mpispawn|palsd?|ssh|rsh|qrsh"
)
"""Programs that start others: shells, wrappers that change how a program runs, and MPI launchers with their daemons."""
RANK_LAUNCHERS = frozenset(
    {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed"}
)
"""Programs that start a job's ranks, each with RANK and WORLD_SIZE in its environment, which no trace contains."""
_INTERPRETER = re.compile(
    r"^(?:python|pypy|perl|ruby|node|julia|Rscript|lua|tclsh|ba|da|z|k|c|tc)?(?:sh)?[\d.]*$"
)
# Commands that only change how a program runs: their options that take the next word, and the number of words
# that precede the program.
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


def app_of(command: Sequence[str]) -> str:
    """The name of the program that a command runs; empty if the command is empty."""
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
    """Return whether a program with this name runs scripts."""
    return bool(_INTERPRETER.match(program))


def is_launcher(program: str) -> bool:
    """Return whether a program, given by path or name, only starts others; shell scripts count, too."""
    name = posixpath.basename(program)
    return bool(_LAUNCHER.fullmatch(name) or re.search(SHELL_SCRIPT, name))


def program_behind(command: Sequence[str]) -> int:
    """The index of the word in a command line that names the program itself; 0 if nothing precedes it."""
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
