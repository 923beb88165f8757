"""DFTracer's library for preloading: where pip, conda, Spack and modules install it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vani.errors import InputError

_NAME = "libdftracer_preload.so"
_BELOW = ("", "lib", "lib64")
_OF_WHEEL = ("lib/python3*/site-packages/dftracer/lib*", "lib64/python3*/site-packages/dftracer/lib*")
_PREFIXES = ("DFTRACER_ROOT", "DFTRACER_DIR", "DFTRACER_PATH", "EBROOTDFTRACER", "VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that users and modules set, and those of Python environments."""


def find_dftracer(program: Sequence[str], environment: Mapping[str, str]) -> Path:
    """The library of the Python that a command runs, or else one named by the environment.

    Raises
    ------
    InputError
        There is no library.
    """
    for prefix in _places(program, environment):
        for folder in (*(prefix / below for below in _BELOW), *(f for form in _OF_WHEEL for f in prefix.glob(form))):
            if (folder / _NAME).is_file():
                return (folder / _NAME).resolve()
    raise InputError(
        "DFTracer's library was not found",
        where=_NAME,
        todo="pip install dftracer in the Python of the program, or name its folder in DFTRACER_ROOT",
    )


def _places(program: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    path = environment.get("PATH")
    own = shutil.which(program[0], path=path) if program else None
    if own is not None:
        # An unresolved link to the interpreter is in the folder of a Python environment.
        yield Path(own).absolute().parent.parent
    for variable in _PREFIXES:
        if value := environment.get(variable):
            yield Path(value)
    for folder in environment.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield Path(folder)
    for tool in ("dftracer_run", "python3"):
        if (file := shutil.which(tool, path=path)) is not None:
            yield Path(file).absolute().parent.parent
