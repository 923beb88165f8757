"""Implements `vani plan listen`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vani.centre.plan.load.load_listener import Listener
from vani.errors import InputError
from vani.schema.host_list import expand

if TYPE_CHECKING:
    from vani.centre.plan.schema.snapshot import Snapshot

def plan_listen(at: str, *, expected: str | Iterable[str] = (), seconds: float = 60.0) -> Snapshot:
    """Listen to publishers for `seconds`, or until all expected ones have reported.

    Parameters
    ----------
    at
        Address to listen on, such as `tcp://127.0.0.1:5570`; it must be reachable for the publishers.
    expected
        Names of servers, or a Slurm host list: `oss[0-6],mds`.

    Raises
    ------
    InputError
        ZeroMQ is not installed, or cannot listen there.
    """
    with snapshots(at, expected=expected, seconds=seconds, is_once=True) as heard:
        return next(heard)


@contextmanager
def snapshots(
    at: str,
    *,
    expected: str | Iterable[str] = (),
    seconds: float = 60.0,
    is_once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Iterator[Snapshot]]:
    """Listen from now on and yield a snapshot every `seconds`, endlessly or once; see `plan_listen`."""

    if not 0.1 <= seconds <= 86_400:
        raise InputError(f"is {seconds:g}", where="--interval", todo="give seconds, 0.1 to 86,400")
    names = expand(expected) if isinstance(expected, str) and expected else list(expected)
    if len(names) > 10_000:
        raise InputError(f"are {len(names):,} servers", where="--expect", todo="give 10,000 at most")
    with Listener(at, names) as listener:
        say(f"listening at {listener.endpoint}")

        def each() -> Iterator[Snapshot]:
            while True:
                listener.hear(seconds, until=(lambda: listener.heard.has_all) if is_once else bool)
                yield listener.snapshot()
                if is_once:
                    return

        yield each()
