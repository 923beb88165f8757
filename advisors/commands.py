"""Lines for a user to paste: words of sh, comments, code in the program's language, commands of batch systems.

Python is recognised by its command line, its interpreter and the modules that it loads, Fortran by the names of units
and namelists. C and C++ leave no such trace. If the language is unknown, advice has lines in all languages.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.advisors.data_files import is_software

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


def quoted_path(path: str) -> str | None:
    """A path as one word of POSIX sh that no command mistakes for an option.

    None for a path with control characters or bytes that are not text: sh has no printable form for it, and a file
    name must never be able to control a terminal.
    """
    if not path or not path.isprintable():
        return None
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def text_literal(text: str) -> str:
    """Text as a literal that is valid in C, Python and JSON: in double quotes, printable, on one line."""
    return json.dumps(text)


def comment(text: str) -> list[str]:
    """Text as comment lines of sh. Nothing in it can end the comment."""
    lines = text.splitlines()
    return [f"# {''.join(c if c.isprintable() else '?' for c in line)}".rstrip() for line in lines]


def command_lines(command: str, path: str, note: str = "") -> list[str]:
    """The command with a path as its last word, and a note as comments, in which `{}` is the path.

    Only a comment for a path that sh has no printable form for.
    """
    quoted = quoted_path(path)
    if quoted is None:
        return comment("a path with control characters is left out: type it yourself")
    return [f"{command} {quoted}", *comment(note.replace("{}", quoted))]


Language = Literal["C", "C++", "Fortran", "Python", "Shell"]

SHELLS: Final = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "env")
_INTERPRETER: Final = re.compile(r"(?:i?python|pypy|torchrun|accelerate|deepspeed|jupyter)[0-9.]*(?:-.*)?")
_SCRIPT: Final = re.compile(r"\.(?:py|ipynb)$")
# Unnamed units (Fortran 2018, 12.5.6.10; `fort.N` in practice), namelists, and sources.
_FORTRAN: Final = re.compile(r"(?:^|/)fort\.[0-9]+$|\.(?:nml|f90|f03|f08)$|(?:^|/)namelist[^/]*$", re.IGNORECASE)


def language_of(app: App | None, profile: Profile) -> Language | None:
    """The language of an app, or of the workload's only app; None if unknown."""
    apps = profile.apps if app is None else [app]
    if len(apps) != 1:
        return None
    if _is_python(apps[0].name) or (len(profile.apps) == 1 and _runs_python(profile.job.command or "")):
        return "Python"
    if apps[0].name in SHELLS or apps[0].name.endswith(".sh"):
        return "Shell"
    files = [file.path for file in profile.files if apps[0].name in file.apps]
    if any(is_software(path) for path in files):
        return "Python"
    return "Fortran" if any(_FORTRAN.search(path) for path in files) else None


def code_lines(code: Mapping[Language, str], language: Language | None) -> list[str]:
    """The code for a language as comments of sh; without one, for all languages, each under its name."""
    own = code.get(language) if language is not None else None
    if own is not None:
        return comment(f"in the program ({language}):\n" + _indented(own))
    lines = (f"{name}:\n{_indented(text)}" for name, text in code.items() if name != "Shell")
    return comment("\n".join(["in the program:", *lines]))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _is_python(word: str) -> bool:
    name = posixpath.basename(word)
    return _INTERPRETER.fullmatch(name) is not None or _SCRIPT.search(name) is not None


def _runs_python(command: str) -> bool:
    # The program may follow options and variables of a launcher.
    return any(_is_python(word) for word in command.split())


@dataclass(frozen=True)
class Launcher:
    """Commands and variables of a launcher, which starts processes on a job's nodes.

    `command` contains `{n}`, the processes per node. `alongside` starts one process per node while the program runs.
    `rank` and `local` are the variables with a process's number in the step and on its node. `size` expands to the
    number of processes in the step, and `hosts` prints one line per node. `chain` starts a script on one node, and
    `wide` a program (`{app}`) with `{ranks}` processes on `{nodes}` nodes, `{each}` per node.
    """

    command: str
    rank: str
    size: str
    local: str
    hosts: str
    alongside: str
    chain: str
    wide: str

    def on_each(self, processes: int = 1) -> str:
        return self.command.replace("{n}", str(processes))

    def size_of(self, processes: int = 1) -> str:
        """Shell text for the number of processes that `on_each(processes)` starts."""
        return self.size.replace("{n}", str(processes))


_PBS_NODES = '"$(sort -u "$PBS_NODEFILE" | wc -l)"'

LAUNCHERS = {
    "slurm": Launcher(
        'srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node={n}',
        "SLURM_PROCID",
        "$SLURM_NTASKS",
        "SLURM_LOCALID",
        'scontrol show hostnames "$SLURM_JOB_NODELIST"',
        'srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1',
        "srun --nodes=1 --ntasks=1 --exclusive {app}",
        "srun --relative=0 --nodes={nodes} --ntasks={ranks} --distribution=block {app}",
    ),
    "flux": Launcher(
        'flux run --nodes="$(flux getattr size)" --tasks-per-node={n}',
        "FLUX_TASK_RANK",
        "$FLUX_JOB_SIZE",
        "FLUX_TASK_LOCAL_ID",
        "flux exec -r all hostname",
        "flux exec -r all",
        "flux run --nodes=1 --ntasks=1 --exclusive {app}",
        "flux run --nodes={nodes} --ntasks={ranks} {app}",
    ),
    "lsf": Launcher(
        "jsrun --rs_per_host=1 --tasks_per_rs={n} --cpu_per_rs=ALL_CPUS",
        "JSM_NAMESPACE_RANK",
        "$JSM_NAMESPACE_SIZE",
        "JSM_NAMESPACE_LOCAL_RANK",
        'sort -u "$LSB_DJOB_HOSTFILE"',
        # A separate resource set, for which the program must leave a core free.
        "jsrun --rs_per_host=1 --tasks_per_rs=1 --cpu_per_rs=1",
        # A jsrun resource set is within a node.
        "jsrun --nrs=1 --tasks_per_rs=1 --cpu_per_rs=ALL_CPUS {app}",
        "jsrun --rs_per_host=1 --nrs={nodes} --tasks_per_rs={each} --cpu_per_rs=ALL_CPUS "
        "--launch_distribution=packed {app}",
    ),
    "pbs": Launcher(
        "mpirun --map-by ppr:{n}:node",
        "OMPI_COMM_WORLD_RANK",
        "$OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        'sort -u "$PBS_NODEFILE"',
        "mpirun --map-by ppr:1:node",
        "mpirun -np 1 {app}",
        "mpirun --map-by ppr:{each}:node -np {ranks} {app}",
    ),
    "pals": Launcher(
        f'mpiexec -n "$(({{n}} * {_PBS_NODES[1:-1]}))" --ppn {{n}}',
        "PMI_RANK",
        "$PMI_SIZE",
        "PMI_LOCAL_RANK",
        'sort -u "$PBS_NODEFILE"',
        f"mpiexec -n {_PBS_NODES} --ppn 1",
        "mpiexec -n 1 {app}",
        "mpiexec -n {ranks} --ppn {each} {app}",
    ),
    "pjm": Launcher(
        'mpiexec -np "$(({n} * PJM_NODE))"',
        "PMIX_RANK",
        "$(({n} * PJM_NODE))",
        "PLE_RANK_ON_NODE",
        'mpiexec -np "$PJM_NODE" hostname',
        'mpiexec -np "$PJM_NODE"',
        "mpiexec -np 1 {app}",
        "mpiexec -np {ranks} {app}",
    ),
}
"""Launchers by batch system; `pals` is for HPE machines on which PBS starts processes with PALS.

`pbs` uses Open MPI's mpirun, and `pjm` Fujitsu's mpiexec, which assigns processes to nodes round-robin if the job was
submitted with `--mpi rank-map-bynode`, as the request of a tier states.
"""


def launcher_of(name: str | None) -> Launcher:
    """The launcher of that name, or Slurm's if the name is unknown."""
    return LAUNCHERS.get((name or "slurm").lower(), LAUNCHERS["slurm"])


def launcher_name(profile: Profile, system: System) -> str | None:
    """Name of the launcher on the machine that the advice is for, or else of the batch system that ran the job.

    None if neither is known.

    """
    return system.launcher or system.scheduler or profile.job.scheduler
