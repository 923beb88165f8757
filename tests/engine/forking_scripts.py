"""Scripts that fork, each run in a process of its own, as commands do: that of the tests has threads."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

__all__ = ["BEGIN", "run"]

BEGIN = """
import os, signal, sys, time
from vani.allocator import keep_freed_memory

keep_freed_memory()
from vani.engine.forks import Forks, can_fork

here = os.getpid()

def is_fork():
    return os.getpid() != here

def share(work, count, forks, told, constants=()):
    team = Forks(forks)
    try:
        return team.share(work, count, told, constants)
    finally:
        team.end()

def is_here():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True

def slow(numbers):
    return [(time.sleep(0.01), os.getpid(), number)[1:] for number in numbers]
"""


def run(script: str, *, status: int = 0) -> list[str]:
    """Lines that a script prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines()
