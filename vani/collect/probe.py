"""Queries to the machine: programs, without a shell and with a time limit, and small files in /proc and /sys."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

Ask = Callable[[list[str]], str]
"""Runs a command and returns its output; raises `NoAnswer`."""


class NoAnswer(Exception):  # noqa: N818 - a fact about the machine, which goes into `unknown`
    """The program is missing, failed, or took too long, as stated in the text.

    `printed` is the standard output of a program that failed: `lfs df` fails if one target
    does not answer, although it has printed all others.
    """

    def __init__(self, why: str, printed: str = "") -> None:
        super().__init__(why)
        self.printed = printed


def ask(command: list[str], timeout_s: float = 10.0) -> str:
    """Run `command` and return its standard output.

    Raises
    ------
    NoAnswer
        The program is missing, failed, or took too long.
    """
    program = shutil.which(command[0])
    if program is None:
        raise NoAnswer(f"{command[0]} is not installed")
    process = subprocess.Popen(
        command,
        executable=program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        # A process that hangs in the kernel cannot be killed, so do not wait for it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        raise NoAnswer(f"{command[0]} did not answer within {timeout_s:g} s") from None
    if process.returncode:
        said = err.decode(errors="backslashreplace").strip().splitlines()
        raise NoAnswer(
            f"{command[0]} failed: {said[0] if said else f'status {process.returncode}'}",
            out.decode(errors="backslashreplace"),
        )
    return out.decode(errors="backslashreplace")


_MAX_BYTES: Final = 16 << 20


def read(path: Path) -> str | None:
    """Read a small text file; None if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="backslashreplace")
    except (OSError, ValueError):
        return None


def entries(folder: Path) -> list[Path]:
    """List a folder, sorted; empty if it is missing or cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (OSError, ValueError):
        return []
