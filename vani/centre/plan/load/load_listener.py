"""Receive publishers' messages, and make a snapshot of the machine from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from vani.centre.plan.load.load_channel import (
    LONGEST,
    TOPIC,
    LoadMessage,
    check_endpoint,
    message_of,
    refused,
    zmq_or_error,
)
from vani.centre.plan.schema.snapshot import IoNode, MetadataServer, Missing, Server, Snapshot, Target
from vani.errors import InputError, one_line
from vani.readers.listing import natural
from vani.units import counted

if TYPE_CHECKING:
    from types import TracebackType

_SILENT: Final = 3
"""Number of intervals without a message after which a publisher counts as stopped: two messages may be lost."""
_MOST_PUBLISHERS: Final = 10_000
_CLOCK_S: Final = 60.0


@dataclass
class _Last:
    """The last message of a publisher, and its arrival time on this host's clock."""

    message: LoadMessage
    heard_s: float


@dataclass
class Heard:
    """The messages received so far; times are seconds of a monotonic clock.

    Parameters
    ----------
    expected
        Servers that count as missing until their first message arrives.
    """

    expected: Iterable[str] = ()
    malformed: int = 0
    late: int = 0
    lost: int = 0
    _why: str = ""
    _last: dict[str, _Last] = field(default_factory=dict)

    def take(self, content: bytes, now_s: float) -> None:
        """Add a message; invalid and late ones are counted and ignored."""
        try:
            message = message_of(content)
            if message.publisher not in self._last and len(self._last) >= _MOST_PUBLISHERS:
                raise InputError(f"there are more than {_MOST_PUBLISHERS:,} publishers")
        except InputError as error:
            self.malformed += 1
            self._why = self._why or str(error)
            return
        before = self._last.get(message.publisher)
        if before is not None and before.message.run == message.run:
            if message.number <= before.message.number:
                self.late += 1
                return
            self.lost += message.number - before.message.number - 1
        self._last[message.publisher] = _Last(message, now_s)

    @property
    def has_all(self) -> bool:
        """Whether every expected server has sent a message; False if none is expected."""
        names = set(self.expected)
        return bool(names) and names <= self._last.keys()

    def snapshot(self, now_s: float, when: datetime) -> Snapshot:
        """The machine according to the messages; figures of silent servers are null, and these servers are listed."""
        no_data: list[Missing] = []
        servers: dict[str, Server] = {}
        nodes: dict[str, IoNode] = {}
        targets: dict[int, Target] = {}
        mds: MetadataServer | None = None
        # Of two messages about the same thing, such as a target that moved, the later one is right.
        for name, heard in sorted(self._last.items(), key=lambda item: item[1].heard_s):
            own_state = heard.message.snapshot
            silent_s = now_s - heard.heard_s
            is_silent = silent_s > _SILENT * heard.message.interval_s
            if is_silent:
                every = f"it published every {heard.message.interval_s:g} s"
                no_data.append(Missing(name=name, reason=f"silent for {silent_s:.0f} s; {every}"))
            elif own_state.no_data:
                no_data += [Missing(name=name, reason=gap.reason) for gap in own_state.no_data]
            if heard.message.role == "mds":
                mds = MetadataServer() if is_silent else own_state.mds or MetadataServer()
                continue
            if heard.message.role == "forwarding":
                own_node = next(iter(own_state.forwarding), IoNode(name=name))
                # No job should use a node that may be dead.
                nodes[name] = IoNode(name=name, state="offline") if is_silent else own_node
                continue
            own = next(iter(own_state.oss), Server(name=name))
            servers[name] = Server(name=name) if is_silent else own
            # Its targets are where they were, and at least as full as they were; their load is unknown.
            targets |= {
                part.index: part.model_copy(update={"load": None}) if is_silent else part
                for part in own_state.ost
            }
        never = [name for name in self.expected if name not in self._last]
        no_data += [Missing(name=name, reason="never heard") for name in never]
        if mds is None:
            no_data.append(Missing(name="mds", reason="no publisher reported the metadata server"))
        machine = Snapshot(
            time=when,
            oss=[servers[name] for name in sorted(servers, key=natural)],
            ost=[targets[index] for index in sorted(targets)],
            forwarding=[nodes[name] for name in sorted(nodes, key=natural)],
            mds=mds,
            no_data=sorted(no_data, key=lambda gap: natural(gap.name)),
        )
        return machine.model_copy(update={"notes": [*machine.reasons_to_wait(), *self._notes(when)]})

    def _notes(self, when: datetime) -> Iterable[str]:
        if self.malformed:
            yield f"{counted(self.malformed, 'message')} left out: {one_line(self._why)[:200]}"
        if self.late:
            yield f"{counted(self.late, 'message')} arrived late or twice"
        if self.lost:
            yield f"{counted(self.lost, 'message')} lost in transit"
        behind = [
            name
            for name, heard in self._last.items()
            if heard.message.snapshot.time is not None
            and (when - _in_utc(heard.message.snapshot.time)).total_seconds() < -_CLOCK_S
        ]
        if behind:
            yield f"clocks of {counted(len(behind), 'server')} are ahead of this one: {', '.join(behind[:5])}"


def _in_utc(when: datetime) -> datetime:
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


class Listener:
    """Receives publishers' messages; use it as a context manager.

    Parameters
    ----------
    endpoint
        Address on which to listen, such as `tcp://127.0.0.1:5570`.

    Raises
    ------
    InputError
        ZeroMQ is not installed, or it cannot listen there.
    """

    def __init__(self, endpoint: str, expected: Iterable[str] = ()) -> None:
        zmq = zmq_or_error()
        check_endpoint(endpoint)
        self.heard = Heard(tuple(dict.fromkeys(expected)))
        self._context = zmq.Context()
        self._socket: Any = self._context.socket(zmq.SUB)
        self._more, self._again = zmq.RCVMORE, zmq.Again
        for option, value in (
            (zmq.LINGER, 0),
            # Longer messages are rejected: the library closes their connection.
            (zmq.MAXMSGSIZE, LONGEST),
            (zmq.RCVHWM, _MOST_PUBLISHERS),
            (zmq.TCP_KEEPALIVE, 1),
        ):
            self._socket.setsockopt(option, value)
        self._socket.setsockopt(zmq.SUBSCRIBE, TOPIC)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise refused(endpoint, error) from None
        self.endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()

    def hear(self, seconds: float, *, until: Callable[[], bool] = bool) -> None:
        """Receive messages for this many seconds, or until `until` returns true."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not until():
            if self._socket.poll(min(left, 1.0) * 1000):
                self._take_all(end)

    def _take_all(self, end: float) -> None:
        import zmq  # noqa: PLC0415 - it was found when this was made

        while time.monotonic() < end:
            try:
                content = self._socket.recv(zmq.NOBLOCK)
                parts = 1
                while self._socket.getsockopt(self._more):
                    self._socket.recv(zmq.NOBLOCK)
                    parts += 1
            except self._again:
                return
            self.heard.take(content if parts == 1 else b"", time.monotonic())

    def snapshot(self) -> Snapshot:
        """The machine according to the messages received so far."""
        return self.heard.snapshot(time.monotonic(), datetime.now(UTC).replace(microsecond=0))

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
