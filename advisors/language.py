"""The language of a program, if a profile shows it, and lines of code in that language.

Python is recognised by its command line, its interpreter and the modules that it loads, Fortran by the names of units
and namelists. C and C++ leave no such trace. If the language is unknown, advice has lines in all languages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from vani.advisors.commands import comment
from vani.advisors.data_files import is_software

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile

Language = Literal["C", "C++", "Fortran", "Python"]

_INTERPRETER: Final = re.compile(r"(?:i?python|pypy|torchrun|accelerate|deepspeed|jupyter)[0-9.]*(?:-.*)?")
_SCRIPT: Final = re.compile(r"\.(?:py|ipynb)$")
# Unnamed units (Fortran 2018, 12.5.6.10; `fort.N` in practice), namelists, and sources.
_FORTRAN: Final = re.compile(
    r"(?:^|/)fort\.[0-9]+$|\.(?:nml|f90|f03|f08)$|(?:^|/)namelist[^/]*$", re.IGNORECASE
)


def language_of(app: App | None, profile: Profile) -> Language | None:
    """The language of an app, or of the workload's only app; None if unknown."""
    apps = profile.apps if app is None else [app]
    if len(apps) != 1:
        return None
    if _is_python(apps[0].name) or (len(profile.apps) == 1 and _runs_python(profile.job.command or "")):
        return "Python"
    files = [file.path for file in profile.files if apps[0].name in file.apps]
    if any(is_software(path) for path in files):
        return "Python"
    return "Fortran" if any(_FORTRAN.search(path) for path in files) else None


def code_lines(code: Mapping[Language, str], language: Language | None) -> list[str]:
    """The code for a language as comments of sh; without one, for all languages, each under its name."""
    own = code.get(language) if language is not None else None
    if own is not None:
        return comment(f"in the program ({language}):\n" + _indented(own))
    return comment(
        "in the program:\n" + "\n".join(f"{name}:\n{_indented(text)}" for name, text in code.items())
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _is_python(word: str) -> bool:
    name = posixpath.basename(word)
    return _INTERPRETER.fullmatch(name) is not None or _SCRIPT.search(name) is not None


def _runs_python(command: str) -> bool:
    # The program may follow options and variables of a launcher.
    return any(_is_python(word) for word in command.split())
