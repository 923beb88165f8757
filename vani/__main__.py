"""The command `vani`, also as `python -m vani`."""

import gc
import os

from vani.cli.signals import end_at_once, leave, unwind

__all__ = ["main"]


def main() -> None:
    """Run the command line as a separate process, and end it with its exit status."""
    end_at_once()
    # numpy's linear algebra, which Vani hardly uses, would start a thread per processor, and interrupt the process
    # where the system refuses one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Loading modules makes ten thousands of objects, all of which stay; later code leaves no cycles.
    gc.set_threshold(200_000, 50, 50)
    from vani.cli.main import main as run  # noqa: PLC0415 - signals are handled before anything is loaded
    from vani.cli.streams import guard_streams  # noqa: PLC0415

    guard_streams()
    try:
        try:
            unwind()
            run()
        finally:
            end_at_once()
            # Looking for cycles in all that was loaded, just before the exit, would be a sixth of a short command.
            gc.freeze()
    except KeyboardInterrupt:
        # It came just before the command began or after it was done.
        leave(130)


if __name__ == "__main__":
    main()
