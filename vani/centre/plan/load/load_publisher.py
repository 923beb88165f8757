"""Publish this server's load repeatedly to all listeners."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from vani.centre.plan.load.load_channel import LoadMessage, Role, check_endpoint, pack, refused, zmq_or_error
from vani.centre.plan.schema.snapshot import Snapshot

_CONNECT_S: Final = 5.0
"""Seconds that the first message waits for a listener; messages before one is connected are lost."""


class Publisher:
    """Sends snapshots of one server; call `close` when done.

    Parameters
    ----------
    endpoint
        Address of a listener, which may start later.

    Raises
    ------
    InputError
        ZeroMQ is not installed, or the endpoint is invalid.
    """

    def __init__(self, endpoint: str, name: str, role: Role, interval_s: float) -> None:
        zmq = zmq_or_error()
        check_endpoint(endpoint)
        self._zmq = zmq
        self._name, self._role, self._interval_s = name, role, interval_s
        self._run, self._number = os.urandom(8).hex(), 0
        self.listeners = 0
        self._context = zmq.Context()
        # A publisher of this kind receives a message for each subscription.
        self._socket: Any = self._context.socket(zmq.XPUB)
        for option, value in (
            (zmq.LINGER, 1000),
            (zmq.SNDHWM, 10),
            (zmq.MAXMSGSIZE, 1024),
            (zmq.RECONNECT_IVL, 100),
            (zmq.RECONNECT_IVL_MAX, 5000),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.XPUB_VERBOSER, 1),
        ):
            self._socket.setsockopt(option, value)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self._socket.close(0)
            self._context.term()
            raise refused(endpoint, error) from None

    def send(self, snapshot: Snapshot) -> bool:
        """Send the state of this server; returns whether a listener is connected."""
        self._count_listeners(_CONNECT_S if not self._number else 0.0)
        message = LoadMessage(
            publisher=self._name,
            run=self._run,
            number=self._number,
            interval_s=self._interval_s,
            role=self._role,
            snapshot=snapshot,
        )
        self._number += 1
        try:
            self._socket.send(pack(message), self._zmq.NOBLOCK)
        except self._zmq.Again:
            return False
        return self.listeners > 0

    def _count_listeners(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self._socket.poll(0 if self.listeners else max(0.0, end - time.monotonic()) * 1000):
            subscription = self._socket.recv(self._zmq.NOBLOCK)
            self.listeners = max(0, self.listeners + (1 if subscription[:1] == b"\1" else -1))

    def close(self) -> None:
        self._socket.close()
        self._context.term()


def keep_sending(
    publisher: Publisher,
    figures: Callable[[], Snapshot],
    *,
    interval_s: float,
    count: int | None,
    say: Callable[[str], None],
) -> None:
    """Send every `interval_s` seconds, `count` times or forever; `say` gets a line when listeners come or go."""
    sent, heard, due = 0, None, time.monotonic()
    while count is None or sent < count:
        is_heard = publisher.send(figures())
        if is_heard != heard:
            say(
                "a listener is connected"
                if is_heard
                else "no listener is connected; messages are lost until one connects"
            )
            heard = is_heard
        sent += 1
        if sent != count:
            due = max(due + interval_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
