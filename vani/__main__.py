"""The command `vani`, also available as `python -m vani`."""

import gc
import os

from vani.cli.signals import end_at_once, leave, unwind


def main() -> None:
    """Run the command line as a separate process, and exit with its status."""
    end_at_once()
    # numpy's linear algebra, which Vani hardly uses, would start one thread per processor, and interrupt the process
    # if the system refuses to start one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Importing modules creates tens of thousands of objects that are never freed; later code creates no cycles.
    gc.set_threshold(200_000, 50, 50)
    # Signals are handled before anything is loaded.
    from vani.cli.main import guard_streams  # noqa: PLC0415
    from vani.cli.main import main as run  # noqa: PLC0415

    guard_streams()
    try:
        try:
            unwind()
            run()
        finally:
            end_at_once()
            # Searching everything that was loaded for cycles before the exit would take a sixth of a short command.
            gc.freeze()
    except KeyboardInterrupt:
        # The interrupt came just before the command began or after it ended.
        leave(130)


if __name__ == "__main__":
    main()
