"""Signals that end a command: unfinished output is removed, one line gives the reason, the exit status is 128 + the
signal.

SIGINT is Ctrl-C; SIGTERM comes from `timeout`, batch systems and containers, SIGHUP from a terminal that was closed.
This module comes before all others and loads nothing heavy: a signal that arrives while they are loaded ends the
process at once.
"""

from __future__ import annotations

import os
import signal
import sys

# `typing` takes longer to load than all that comes before it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

__all__ = ["end_at_once", "leave", "received", "unwind", "word"]

_WORDS = {
    130: "interrupted",  # SIGINT
    143: "terminated",  # SIGTERM
    129: "the terminal was closed",  # SIGHUP
}
_received = 0
_unwinds = False


def end_at_once() -> None:
    """Let the signals end the process where it is: it has not begun yet, or is done."""
    global _unwinds  # noqa: PLW0603 - signals are the whole process's
    _unwinds = False
    for status in _WORDS:
        number = signal.Signals(status - 128)
        # Signals that `nohup` or a shell set to be ignored stay ignored.
        if signal.getsignal(number) not in (signal.SIG_IGN, _arrived):
            signal.signal(number, _arrived)


def unwind() -> None:
    """Let the signals raise KeyboardInterrupt or SystemExit, so that unfinished output is removed."""
    global _unwinds  # noqa: PLW0603
    _unwinds = True


def received() -> int:
    """Exit status of the signal that was raised last; 0 if there was none."""
    return _received


def word(status: int) -> str:
    """The meaning of the exit status of a signal; empty for others."""
    return _WORDS.get(status, "")


def leave(status: int) -> None:
    """End the process without delay, with the exit status of a signal."""
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
    # Batch systems repeat it, and removing unfinished output takes time.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(_received)
