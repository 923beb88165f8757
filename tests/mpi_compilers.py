"""Which MPI compilers work here: Debian's come without headers."""

from __future__ import annotations

import functools
import shutil
import subprocess

__all__ = ["compiles_mpi"]


@functools.cache
def compiles_mpi(compiler: str) -> bool:
    """Whether a compiler, such as `mpicc.mpich`, is installed and finds `mpi.h`."""
    if shutil.which(compiler) is None:
        return False
    done = subprocess.run(
        [compiler, "-E", "-"], input=b"#include <mpi.h>\n", capture_output=True, check=False, timeout=60
    )
    return done.returncode == 0
