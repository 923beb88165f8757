"""Starts strace for one MPI rank: `python rank.py FOLDER STRACE OPTIONS... -- PROGRAM...`.

It becomes strace, so signals and the exit status are the program's. Many ranks start at once on a shared file
system, so this runs as a file and imports almost nothing.
"""

import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_RANK = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "FLUX_TASK_RANK",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    # Last, because a batch script has it, too.
    "SLURM_PROCID",
)


def log_of(folder: str, environment: "Mapping[str, str]") -> str:
    """The rank's log, named by its number and host; without a launcher's rank, by host and process."""
    for variable in _RANK:
        value = environment.get(variable, "")
        if value.isdecimal():
            return f"{folder}/rank-{int(value):05d}@{socket.gethostname()}.strace"
    return f"{folder}/{socket.gethostname()}-{os.getpid()}.strace"


if __name__ == "__main__":
    folder, *words = sys.argv[1:]
    at = words.index("--")
    os.execv(words[0], [*words[:at], "-o", log_of(folder, os.environ), *words[at:]])
