"""Signals that end a command: unfinished output is removed, a line gives the reason, the status is 128 + signal.

SIGINT is Ctrl-C; SIGTERM comes from `timeout`, batch systems and containers; SIGHUP from a closed terminal. This
module is loaded first and loads nothing heavy itself, so that a signal that arrives while other modules are loaded
ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys

# Importing `typing` takes longer than everything before it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_WORDS = {
    130: "interrupted",  # SIGINT
    143: "terminated",  # SIGTERM
    129: "the terminal was closed",  # SIGHUP
}
_received = 0
_unwinds = False


def end_at_once() -> None:
    """Let signals end the process immediately: it has not started its work, or has finished it."""
    global _unwinds  # noqa: PLW0603 - signals are the whole process's
    _unwinds = False
    for status in _WORDS:
        number = signal.Signals(status - 128)
        # Signals that `nohup` or a shell ignores remain ignored.
        if signal.getsignal(number) not in (signal.SIG_IGN, _arrived):
            signal.signal(number, _arrived)


def unwind() -> None:
    """Let signals raise KeyboardInterrupt or SystemExit, so that unfinished output is removed."""
    global _unwinds  # noqa: PLW0603
    _unwinds = True


def received() -> int:
    """Exit status of the last signal; 0 if there was none."""
    return _received


def word(status: int) -> str:
    """The meaning of a signal's exit status; empty for other statuses."""
    return _WORDS.get(status, "")


def leave(status: int) -> None:
    """End the process immediately with a signal's exit status."""
    try:  # noqa: SIM105 - contextlib is not loaded yet
        os.write(2, f"vani: {word(status)}\n".encode())
    except OSError:
        pass
    os._exit(status)


def _arrived(number: int, frame: FrameType | None) -> None:
    del frame
    if not _unwinds:
        leave(128 + number)
    global _received  # noqa: PLW0603
    _received = 128 + number
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    # Batch systems send the signal again, and removing unfinished output takes time.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(_received)
