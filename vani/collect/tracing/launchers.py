"""Launchers of parallel programs, and scripts and other programs that start several programs.

For a launcher: how it passes variables on, and where in its command line the program begins.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vani.errors import InputError

SEPARATOR = ":"
"""Separator between several programs in a command line."""


@dataclass(frozen=True)
class Launcher:
    """The command line syntax of one launcher."""

    name: str
    programs: str
    """Names of its programs, separated by blanks."""
    pass_on: Callable[[str, str], list[str]]
    """Returns the options that set a variable, given its name and value, in each process of the program."""
    takes_one: str
    """Options that take the next word, separated by blanks."""
    takes_two: str = ""
    words: int = 1
    """Number of words in the launcher command itself (`flux run`: 2)."""
    block: tuple[str, ...] = ()
    """Options that fill one node after another with processes; empty if there are none."""
    cyclic: tuple[str, ...] = ()
    """Options that distribute processes over the nodes in turn."""
    order: str = ""
    """Options that set this order, by which a user may already have set it, separated by blanks."""
    versions: tuple[str, ...] = ()
    """Words in the output of `mpirun --version` if it is this launcher's."""


_SRUN = Launcher(
    "srun",
    "srun",
    lambda name, value: [f"--export=ALL,{name}={value}"],
    # Not --pty, --multi-prog, -I and -K: their values are optional, and joined to them.
    "-A -a -B -b -c -C -d -D -e -G -i -J -L -m -M -n -N -o -p -q -r -S -t -T -w -W -x --account --chdir --constraint "
    "--cpu-bind --cpus-per-task --distribution --error --exclude --export --gpus --gpus-per-node --gpus-per-task "
    "--gres --het-group --hint --input --job-name --jobid --licenses --mail-type --mail-user --mem --mem-bind "
    "--mem-per-cpu --mem-per-gpu --mpi --network --nodefile --nodelist --nodes --ntasks --ntasks-per-core "
    "--ntasks-per-node --ntasks-per-socket --open-mode --output --partition --qos --relative --reservation --signal "
    "--time --time-min --tres-bind --tres-per-task --wait",
    block=("--distribution=block",),
    cyclic=("--distribution=cyclic",),
    order="-m --distribution",
)
_FLUX = Launcher(
    "flux run",
    "",
    lambda name, value: [f"--env={name}={value}"],
    "-n -c -g -N -t -o -q -B -x --ntasks --cores --cores-per-task --gpus-per-task --nodes --nslots --time-limit "
    "--queue --bank --env --env-remove --env-file --input --output --error --job-name --setopt --setattr "
    "--tasks-per-node --tasks-per-core --cores-per-node --gpus-per-node --cwd --dependency --requires --begin-time "
    "--signal --taskmap --rlimit --conf --add-file --urgency --flags",
    words=2,
    block=("--taskmap=block",),
    cyclic=("--taskmap=cyclic",),
    order="--taskmap",
)
_LAUNCHERS = (
    _SRUN,
    Launcher(
        "Open MPI",
        "orterun prterun mpirun.openmpi mpiexec.openmpi",
        lambda name, value: ["-x", f"{name}={value}"],
        "-n -np -c -N -x -H -host --host -hostfile --hostfile -machinefile --machinefile -npernode --npernode "
        "-npersocket --npersocket -wdir --wdir -wd --wd -path --path --prefix -prefix --map-by -map-by --bind-to "
        "-bind-to --rank-by -rank-by --output-filename -output-filename --output --stdin -stdin -am --am -rf "
        "--rankfile -rankfile --timeout -timeout --tune -tune --pset --runtime-options --personality --n --np "
        "-cpu-list --cpu-list -D",
        "-mca --mca -gmca --gmca -omca --omca --prtemca --pmixmca",
        block=("--map-by", "slot"),
        cyclic=("--map-by", "node"),
        order="--map-by -map-by --rank-by -rank-by -npernode --npernode --rankfile -rankfile -rf",
        versions=("Open MPI", "OpenRTE", "PRRTE"),
    ),
    Launcher(
        "MPICH",
        "mpirun.mpich mpiexec.mpich mpiexec.hydra mpirun_rsh",
        lambda name, value: ["-genv", name, value],
        "-n -np -ppn -f -hosts -host -wdir -path -genvlist -envlist -launcher -launcher-exec -bootstrap -rmk -iface "
        "-arch -bind-to -map-by -membind -topolib -demux -configfile -machinefile -hostlist -outfile-pattern "
        "-errfile-pattern -prefix -pmi-port -timeout -perhost -gpus-per-proc -usize -hostfile -hostsfile -envexcl",
        "-env -genv",
        # It places this many processes on each host in turn, and then starts again with the first host.
        cyclic=("-ppn", "1"),
        order="-ppn -perhost -machinefile -configfile",
        versions=("HYDRA", "Hydra", "MPICH", "Intel(R) MPI", "MVAPICH"),
    ),
    Launcher(
        "jsrun",
        "jsrun",
        lambda name, value: ["-E", f"{name}={value}"],
        "-n -a -c -g -r -K -l -b -d -E -F -D -e -h -i -k -L -m -M -o -p -P -S -t -U -X -A -f -x --nrs --tasks_per_rs "
        "--cpu_per_rs --gpu_per_rs --rs_per_host --rs_per_socket --latency_priority --bind --launch_distribution "
        "--env --env_eval --chdir --stdio_mode --stdio_input --stdio_stdout --stdio_stderr --np --smpiargs "
        "--memory_per_rs --use_reservation --use_resources --spread --erf_input --exit_on_error",
        block=("--launch_distribution", "packed"),
        cyclic=("--launch_distribution", "cyclic"),
        order="-d --launch_distribution --erf_input",
    ),
    Launcher(
        "aprun",
        "aprun",
        lambda name, value: ["-e", f"{name}={value}"],
        "-n -N -d -S -cc -L -m -e -j -p -r -sn -sl -t -w -E",
    ),
)
_ASKED = ("mpirun", "mpiexec")


def launcher_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Launcher | None:
    """The launcher of the command's program; None if it is started directly.

    `mpirun` and `mpiexec` are run to get their version, because both large families use these names.

    Raises
    ------
    InputError
        It is an mpirun of neither family.
    """
    name = Path(command[0]).name
    if name == "flux":
        return _FLUX if len(command) > 1 and command[1] == "run" else None
    said = _version(command[0], environment) if name in _ASKED else ""
    for launcher in _LAUNCHERS:
        if name in launcher.programs.split() or any(words in said for words in launcher.versions):
            return launcher
    if name not in _ASKED:
        return None
    raise InputError(
        "is neither Open MPI's nor MPICH's, according to its version text",
        where=command[0],
        todo="set LD_PRELOAD and RECORDER_TRACES_DIR by its own options (docs/tracing.md), without vani trace",
    )


def with_variables(command: Sequence[str], launcher: Launcher, variables: Mapping[str, str]) -> list[str]:
    """The command line with options that set variables in each process of the program.

    Raises
    ------
    InputError
        srun is configured to pass no variables on.
    """
    first, rest = list(command[: launcher.words]), list(command[launcher.words :])
    if launcher is not _SRUN:
        return [*first, *(word for item in variables.items() for word in launcher.pass_on(*item)), *rest]
    added = ",".join(f"{name}={value}" for name, value in variables.items())
    for at, word in enumerate(rest):
        follows = word == "--export" and at + 1 < len(rest)
        if follows or word.startswith("--export="):
            place = at + 1 if follows else at
            if rest[place].rpartition("=")[2] in ("NONE", "NIL"):
                what = "--export=NONE hides LD_PRELOAD from the program"
                raise InputError(what, todo="leave it out for this run")
            rest[place] = f"{rest[place]},{added}"
            return first + rest
    return [*first, f"--export=ALL,{added}", *rest]


def mapped(command: Sequence[str], order: Literal["block", "cyclic"]) -> list[str] | None:
    """The command line with the launcher's options for an order of processes on nodes.

    None if the command does not begin with a launcher that has such options, or sets an order already.
    """
    try:
        launcher = launcher_of(command)
    except InputError:
        return None
    options = () if launcher is None else launcher.block if order == "block" else launcher.cyclic
    if launcher is None or not options:
        return None
    rest = command[launcher.words :]
    if any(word.partition("=")[0] in launcher.order.split() for word in rest):
        return None
    return [*command[: launcher.words], *options, *rest]


def programs_at(command: Sequence[str], launcher: Launcher) -> list[int]:
    """The indices of the programs in a launcher's command line: one, or several separated by `:`.

    Raises
    ------
    InputError
        A program cannot be found.
    """
    indices = [_program_from(command, launcher, launcher.words)]
    while SEPARATOR in command[indices[-1] :]:
        indices.append(_program_from(command, launcher, command.index(SEPARATOR, indices[-1]) + 1))
    return indices


def _program_from(command: Sequence[str], launcher: Launcher, at: int) -> int:
    while at < len(command):
        word = command[at]
        if word == "--":
            at += 1
            break
        if not word.startswith("-"):
            break
        at += 1 + (word in launcher.takes_one.split()) + 2 * (word in launcher.takes_two.split())
    if at >= len(command) or shutil.which(command[at]) is None:
        shown = repr(command[at]) if at < len(command) else "nothing"
        raise InputError(
            f"{launcher.name}: cannot find where the program starts: {shown} cannot be run",
            todo="write -- before the program, or its full path",
        )
    return at


def _version(program: str, environment: Mapping[str, str] | None) -> str:
    try:
        completed = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
            env=None if environment is None else dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"cannot be run ({error})", where=Path(program)) from error
    return completed.stdout + completed.stderr


_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish"})
_STARTERS = frozenset({"make", "gmake", "ninja", "parallel", "xargs", "snakemake", "nextflow"})
_STEP = re.compile(
    r"^\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:time\s+)?"
    r"(?P<step>(?:\S*/)?(?:mpiexec|mpirun|srun|jsrun|aprun|flux run)(?:\.\w+)?\s.*?)\s*$"
)


def starts_others(command: Sequence[str], path: str | None) -> bool:
    """Return whether a command's program is a shell with a script, or another program that starts programs.

    Parameters
    ----------
    path
        Folders to search for programs, as in PATH.
    """
    name = Path(command[0]).name
    if name in _STARTERS or (name in _SHELLS and len(command) > 1):
        return True
    file = shutil.which(command[0], path=path)
    return file is not None and bool(_SHELLS.intersection(_interpreter_of(Path(file))))


def launches_in(command: Sequence[str], path: str | None) -> list[str]:
    """The lines in a shell script, or in the text after `-c`, that start a launcher of parallel programs."""
    texts = []
    if Path(command[0]).name in _SHELLS:
        words = [word for word in command[1:] if not word.startswith("-")][:1]
        texts = words if "-c" in command else [_text_of(Path(word)) for word in words]
    elif file := shutil.which(command[0], path=path):
        texts = [_text_of(Path(file))]
    steps = [_STEP.match(line) for text in texts for line in re.split(r"\n|;|&&|&(?!\d)|\|\|", text)]
    return [step["step"] for step in steps if step]


def _interpreter_of(file: Path) -> list[str]:
    """Words on the first line of a script (`#!/usr/bin/env bash`)."""
    first = _text_of(file, most=256).partition("\n")[0]
    return [Path(word).name for word in first[2:].split()] if first.startswith("#!") else []


def _text_of(file: Path, most: int = 1 << 20) -> str:
    try:
        with file.open("rb") as script:
            return script.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
