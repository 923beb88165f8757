"""Runs commands on a terminal of 80 columns, as a user sees them."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["on_terminal"]


def on_terminal(
    command: Sequence[str | Path],
    place: Path,
    *,
    environment: Mapping[str, str] | None = None,
    columns: int = 80,
) -> tuple[int, str]:
    """Exit status of a command, and its terminal output including escape sequences."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        env={**os.environ, **(environment or {})},
    )
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        # Linux' error when the other side is closed.
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")
