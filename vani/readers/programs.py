"""Programs of a run: their names from a trace's folder or command line, and programs that only start others.

`<host>-<user>-<exe>-<pid>-HHMMSS.mmm` (2.5p) or `HHMMSS.mm-<host>-<user>-<exe>-<pid>` (2.5g, 3.0): each of the three
names may contain hyphens, so their boundaries are ambiguous. These rules decide, in this order:

1. a missing user name: getlogin(3) failed, and Recorder wrote `(null)` or `user-unknown`;
2. exactly three words: one for each name;
3. the paths in the trace: a folder on them has the user's name, such as `/home/alice`;
4. the words: a host continues while parts of host names follow, which are numbers (`login-01`, `ip-10-0-12-34`),
   places in a rack (`r2i0n4`) and usual node names (`gpu-login`), after at most one other word. The next word is
   the user. So `n1-login-01-alice-xhpl` is xhpl, and `host-alice-my-solver` is my-solver.

Rules 3 and 4 may be wrong; the result states that.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Compiled on first use, because most traces need few of them.
_DEFAULT_NAMES: Final = (r"(?P<names>.+-.+-.+)-\d+-\d{6}\.\d+", r"\d{6}\.\d+-(?P<names>.+-.+-.+)-\d+")
_NAMELESS: Final = r".+?-(?:\(null\)|user-unknown)-(?P<exe>.+)"
_HOST_PART: Final = (
    # The name of a user or program begins with a letter; rack places are letters, each with few digits.
    r"(?i)\d.*|[a-z]\d{1,3}|(?:[a-z]\d{1,4}){2,}"
    r"|(?:login|node|compute|cnode|head|front|frontend|backend|batch|debug|worker|master|service|server|host|nid|rack"
    r"|blade|chassis|vm|gpu|cpu|mic|knl|bigmem|ext|int|mom|viz|dm|dtn)\d*"
)
_COMMON_FOLDERS: Final = frozenset(
    {"bin", "case", "data", "home", "input", "job", "lib", "opt", "output", "project", "projects", "restart", "run",
     "runs", "scratch", "src", "test", "tests", "tmp", "user", "users", "usr", "var", "work"}
)  # fmt: skip
"""Folders with these names do not prove a user."""
_LONGEST_USER: Final = 3
"""Maximum number of words in a user name that is searched for in paths."""


@dataclass(frozen=True, eq=False)
class AppName:
    """Executable name, with its uncertainty."""

    name: str
    doubt: str | None = None
    """Reason why the name may be wrong, as a sentence."""
    user: str | None = None
    """User who ran the executable; None if the folder name does not show it."""


def app_of_folder(directory: str, holds: Callable[[str], bool] = lambda _: False) -> AppName:
    """Find a trace's executable name from its folder name (contract, "app").

    Parameters
    ----------
    holds
        Returns whether any path in the trace contains a folder of that name; called only if the words do not decide.
    """
    for form in _DEFAULT_NAMES:
        match = re.fullmatch(form, directory)
        if match:
            return _executable(match["names"], holds)
    # Steps that run in parallel often differ by a letter: 01a-sim, 01b-weather.
    stripped = re.sub(r"^\d+[A-Za-z]?[._-]+(?=[^\d._-])", "", directory)
    stripped = re.sub(r"^[\d._-]+(?=[^\d._-])", "", stripped)
    stripped = re.sub(r"(?<=[^\d._-])[._-]\d+$", "", stripped)
    return AppName(stripped or directory)


def app_name(directory: str) -> str:
    """Find the executable name from the folder name alone; see `app_of_folder`."""
    return app_of_folder(directory).name


def _executable(names: str, holds: Callable[[str], bool]) -> AppName:
    nameless = re.fullmatch(_NAMELESS, names)
    if nameless:
        return AppName(nameless["exe"])
    words = names.split("-")
    if len(words) == 3:
        return AppName(words[2], user=words[1])
    begin, end = _user_in_paths(words, holds) or _user_after_host(words)
    host, user, exe = ("-".join(part) for part in (words[:begin], words[begin:end], words[end:]))
    return AppName(
        exe,
        f"read off the name of the trace's folder, where host, user and program are joined by hyphens: taken as host "
        f"{host}, user {user}, program {exe}. If that is wrong, name it in job.yaml (`apps`)",
        user,
    )


def _user_in_paths(words: list[str], holds: Callable[[str], bool]) -> tuple[int, int] | None:
    """Word range of the user name: the earliest that matches a folder, and the longest there; None if none matches."""
    last = len(words) - 1
    for begin in range(1, last):
        for end in range(min(begin + _LONGEST_USER, last), begin, -1):
            user = "-".join(words[begin:end])
            common = not user or user in _COMMON_FOLDERS or re.fullmatch(_HOST_PART, user)
            if not common and holds(user):
                return begin, end
    return None


def _user_after_host(words: list[str]) -> tuple[int, int]:
    """Word range of the user name right after the host, which leaves at least one word for the program."""
    host = 1
    for end in range(2, len(words) - 1):
        if re.fullmatch(_HOST_PART, words[end - 1]) and end - host <= 2:
            host = end
    return host, host + 1


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
_INTERPRETER = re.compile(r"^(?:python|pypy|perl|ruby|node|julia|Rscript|lua|tclsh|ba|da|z|k|c|tc)?(?:sh)?[\d.]*$")
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
