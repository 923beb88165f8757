"""The bundled traces with a golden profile, and the parts of a profile that do not depend on the trace."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import vani
from vani.schema.profile import Profile

HERE = Path(__file__).resolve().parent
TRACES = HERE.parent / "data" / "traces"
NAMES = (
    "v2-cm1like-8r",
    "v2-ipc-mpiio-mix-4r",
    "v2-posix-mix-nonmpi",
    "v25g-noipc-ior-fpp-4r",
    "v25g-pr-ior-strided-8r",
    "v25g-posix-mix-nonmpi",
    "v3-bothpr-mpiio-mix-4r",
    "v3-ckpt-then-restart-8r",
    "v3-cm1like-16r",
    "v3-haccio-ssf-8r",
    "v3-ior-ssf-hdf5-4r",
    "v3-mpitracing-cm1like-4r",
    "v3-netcdf-pnetcdf-4r",
    "v3-noipc-rawts-ior-4r",
    "v3-posix-mix-4r",
)


def golden_path(name: str) -> Path:
    return HERE / f"{name}.yaml"


@lru_cache
def profile_of(name: str) -> Profile:
    """The profile of a bundled trace, with all files listed, but without the trace's path and Vani's version."""
    with TemporaryDirectory() as store:
        found = vani.profile(TRACES / name, store=store, files=None, scheduler="synchronous")
    traces = [t.model_copy(update={"path": Path(t.path).name}) for t in found.traces]
    return found.model_copy(
        update={"traces": traces, "generator": found.generator.model_copy(update={"version": "0"})}
    )


@lru_cache
def golden(name: str) -> Profile:
    return Profile.load(golden_path(name))
