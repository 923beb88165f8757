"""Implements `vani plan publish`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vani.api.arguments import PathLike
from vani.centre.plan.load.load_publisher import Publisher, keep_sending
from vani.centre.plan.load.server_load import busy_share, memory_share, read_busy_time, read_targets
from vani.centre.plan.schema.snapshot import IoNode, MetadataServer, Missing, Server, Snapshot
from vani.collect.probe import ask
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.load.load_channel import Role
    from vani.centre.plan.load.server_load import BusyTime

_FIRST_S = 1.0
"""Seconds over which the first processor load is measured."""


def plan_publish(
    to: str,
    *,
    name: str,
    role: Literal["oss", "mds", "forwarding"] = "oss",
    interval_s: float = 60.0,
    count: int | None = None,
    lctl: PathLike | None = None,
    root: PathLike = "/",
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Send the load of this server to all listeners repeatedly.

    Parameters
    ----------
    to
        Address of the listener, such as `tcp://mds:5570`.
    count
        Number of messages to send; None: no limit.
    lctl
        A file with the output of `lctl get_param`, read for each message; None runs `lctl`.
    say
        Called with a line when a listener connects or leaves.

    Raises
    ------
    InputError
        ZeroMQ is not installed, an argument is invalid, or `lctl` is missing.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - loads the models

    if not 0.1 <= interval_s <= 86_400:
        raise InputError(f"is {interval_s:g}", where="--interval", todo="give seconds, 0.1 to 86,400")
    try:
        Server(name=name)
    except ValidationError:
        raise InputError(
            f"is {name[:40]!r}", where="--name", todo="give 1 to 200 printable signs without quotes"
        ) from None
    if lctl is not None and not Path(lctl).exists():
        # Later it may be missing for a moment, which the messages report.
        raise InputError("no such file", where=lctl)
    place = Path(root)
    with closing(Publisher(to, name, role, interval_s)) as publisher:
        before = read_busy_time(place)
        time.sleep(min(_FIRST_S, interval_s))

        def figures() -> Snapshot:
            nonlocal before
            now = read_busy_time(place)
            snapshot = _snapshot(name, role, before, now, place, None if lctl is None else Path(lctl))
            before = now
            return snapshot

        keep_sending(publisher, figures, interval_s=interval_s, count=count, say=say)


def _snapshot(
    name: str,
    role: Role,
    before: BusyTime | None,
    now: BusyTime | None,
    root: Path,
    lctl: Path | None,
) -> Snapshot:
    when = datetime.now(UTC).replace(microsecond=0)
    if role == "forwarding":
        # Only the forwarding daemon knows the length of its queue.
        return Snapshot(time=when, forwarding=[IoNode(name=name)])
    cpu, memory = busy_share(before, now), memory_share(root)
    lacks = [
        f"/proc/{file} does not show it" for file, share in (("stat", cpu), ("meminfo", memory)) if share is None
    ]
    if role == "mds":
        gaps = [Missing(name=name, reason=lack) for lack in lacks]
        return Snapshot(time=when, mds=MetadataServer(cpu=cpu, memory=memory), no_data=gaps)
    targets, why = read_targets(name, ask, lctl)
    gaps = [Missing(name=name, reason=lack) for lack in (*lacks, *([why] if why else []))]
    return Snapshot(time=when, oss=[Server(name=name, cpu=cpu, memory=memory)], ost=targets, no_data=gaps)
