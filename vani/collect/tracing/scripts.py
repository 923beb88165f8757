"""Scripts and other programs that start several programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

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
