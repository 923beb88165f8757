"""Recorder's library: as named by the user, or where builds, Spack and modules place it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vani.errors import InputError

_NAME = "librecorder.so"
_BELOW = ("", "lib", "lib64", "build/lib", "build/bin")
_NAMED = ("RECORDER_ROOT", "RECORDER_INSTALL_PATH")
"""Variables that Recorder's documentation uses, so that setting one is intentional."""
_MODULES = ("RECORDER_DIR", "RECORDER_HOME", "RECORDER_PREFIX", "RECORDER_PATH", "EBROOTRECORDER")
"""Variables that modules of sites and of EasyBuild set."""


def find_recorder(named: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Recorder's library; None if nothing names one.

    Parameters
    ----------
    named
        The library or Recorder's installation folder, as named by the user.

    Raises
    ------
    InputError
        There is none at the place named by the user, `RECORDER_ROOT` or `RECORDER_INSTALL_PATH`.
    """
    if named is not None:
        return _library_at(named) or _missing(named, "--recorder")
    for variable in _NAMED:
        if value := environment.get(variable):
            return _library_at(Path(value)) or _missing(Path(value), variable)
    return next((library for place in _places(environment) if (library := _library_at(place))), None)


def _places(environment: Mapping[str, str]) -> Iterator[Path]:
    for variable in _MODULES:
        if value := environment.get(variable):
            yield Path(value)
    # Spack and most modules extend these; Recorder's tools are next to its library.
    for variable, above in (("LD_LIBRARY_PATH", False), ("CMAKE_PREFIX_PATH", False), ("PATH", True)):
        for folder in environment.get(variable, "").split(":"):
            if folder and not above:
                yield Path(folder)
            elif folder and (Path(folder) / "recorder2text").is_file():
                yield Path(folder).parent


def _library_at(place: Path) -> Path | None:
    if place.is_file():
        return place.resolve()
    return next(
        ((place / below / _NAME).resolve() for below in _BELOW if (place / below / _NAME).is_file()), None
    )


def _missing(place: Path, by: str) -> Path:
    raise InputError(
        f"contains no {_NAME}, though {by} names it",
        where=place,
        todo=f"name the library, or the folder whose lib/ contains it (docs/tracing.md); without {by}, strace is used",
    )
