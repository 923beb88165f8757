"""Tarazu's monitoring (section 5.6): servers report their load, and a collector keeps one snapshot of the machine.

    python monitoring.py collect --expect oss0,mds -o now.yaml
    python monitoring.py report --name oss0 --role oss       # on each server

A message is JSON in one UDP packet; the paper uses ZeroMQ, which hides lost packets. There is no password: let only
the servers' network reach the port.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

from vani.centre.plan.schema.snapshot import MetadataServer, Missing, Server, Snapshot

INTERVAL_S = 60.0
SILENT = 3
"""Intervals without a message after which the figures of a server are unknown: null, never 0."""


def load() -> dict[str, float]:
    """Load average per processor and the used share of memory, both 0 to 1."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {words[0]: int(words[1]) for words in lines}
    return {
        "cpu": min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)),
        "memory": 1 - memory["MemAvailable:"] / memory["MemTotal:"],
    }


def report(place: tuple[str, int], name: str, role: str, count: int | None) -> None:
    """Send this server's load every minute."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while count is None or count > 0:
        sender.sendto(json.dumps({"name": name, "role": role, **load()}).encode(), place)
        count = None if count is None else count - 1
        if count != 0:
            time.sleep(INTERVAL_S)


def snapshot_of(heard: dict[str, tuple[float, dict]], expected: list[str], now_s: float) -> Snapshot:
    """The machine by the latest message of each server, which `heard` has with its time of arrival."""
    silent = {name for name, (at_s, _) in heard.items() if now_s - at_s > SILENT * INTERVAL_S}
    missing = [Missing(name=name, reason="silent for three intervals") for name in sorted(silent)]
    missing += [Missing(name=name, reason="never heard") for name in expected if name not in heard]
    oss, mds = [], None
    for name, (_, message) in sorted(heard.items()):
        load = {key: None if name in silent else message[key] for key in ("cpu", "memory")}
        if message["role"] == "mds":
            mds = MetadataServer(**load)
        else:
            oss.append(Server(name=name, **load))
    found = Snapshot(time=datetime.now(UTC).replace(microsecond=0), oss=oss, mds=mds, no_data=missing)
    # Above 70 % of the metadata server's processors or 50 % of its memory, no OSTs are allotted.
    return found.model_copy(update={"notes": found.reasons_to_wait()})


def collect(place: tuple[str, int], expected: list[str], output: Path, *, once: bool) -> None:
    """Receive messages, and write the snapshot every minute, or once all expected servers have reported."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(place)
    heard: dict[str, tuple[float, dict]] = {}
    while True:
        end_s = time.monotonic() + INTERVAL_S
        while (left_s := end_s - time.monotonic()) > 0 and not (once and heard.keys() >= set(expected)):
            receiver.settimeout(left_s)
            try:
                message = json.loads(receiver.recv(65_535))
            except TimeoutError:
                break
            heard[message["name"]] = (time.monotonic(), message)
        output.write_text(snapshot_of(heard, expected, time.monotonic()).to_yaml())
        if once:
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("report", "collect"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5570)
    parser.add_argument("--name", default=socket.gethostname())
    parser.add_argument("--role", choices=("oss", "mds"), default="oss")
    parser.add_argument("--count", type=int, help="exit after this many messages")
    parser.add_argument("--expect", default="", help="names of servers, separated by commas")
    parser.add_argument("--once", action="store_true", help="exit after one snapshot")
    parser.add_argument("-o", "--output", type=Path, default=Path("now.yaml"))
    given = parser.parse_args()
    place = (given.host, given.port)
    if given.action == "report":
        report(place, given.name, given.role, given.count)
    else:
        collect(place, [name for name in given.expect.split(",") if name], given.output, once=given.once)
