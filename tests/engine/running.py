"""Whether processes of a test are still running."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_running"]


def is_running(process: int) -> bool:
    """Whether a process is running; one that has ended but is still in the table is not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
