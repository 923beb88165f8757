"""`vani plan publish` and `vani plan listen`, over sockets on this host."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing

import pytest

from vani import centre
from vani.centre.plan.cli.listen import listen
from vani.centre.plan.cli.publish import publish
from vani.centre.plan.load.load_channel import ENDPOINT, LONGEST, TOPIC
from vani.centre.plan.load.load_listener import Listener
from vani.centre.plan.load.load_publisher import Publisher
from vani.centre.plan.schema.snapshot import Server, Snapshot, Target
from vani.errors import InputError

zmq = pytest.importorskip("zmq")

ANY = "tcp://127.0.0.1:*"
DUMP = "obdfilter.s-OST0003.kbytestotal=100\nobdfilter.s-OST0003.kbytesavail=75\n"


def state_of(number, cpu=0.5):
    name = f"oss{number}"
    return Snapshot(
        oss=[Server(name=name, cpu=cpu, memory=0.1)],
        ost=[Target(index=number, oss=name, size=100, used=number)],
    )


def test_a_hundred_publishers_are_heard_and_one_that_stops_is_missing():
    names = [f"oss{number}" for number in range(100)]
    with Listener(ANY, names) as listener, ExitStack() as until:
        publishers = [
            until.enter_context(closing(Publisher(listener.endpoint, name, "oss", 0.5))) for name in names
        ]
        listener.hear(0.05)  # Subscribes.

        def send(some):
            for number, one in enumerate(some):
                assert one.send(state_of(number, number / 100))

        begin = time.monotonic()
        sending = threading.Thread(target=send, args=(publishers,))
        sending.start()
        listener.hear(30.0, until=lambda: listener.heard.has_all)
        sending.join()
        assert time.monotonic() - begin < 20
        found = listener.snapshot()
        assert [one.name for one in found.oss] == names
        assert [one.cpu for one in found.oss] == [number / 100 for number in range(100)]
        assert [one.used for one in found.ost] == list(range(100))
        assert [one.name for one in found.no_data] == ["mds"]
        time.sleep(1.6)
        send(publishers[:-1])
        listener.hear(0.5)
        found = listener.snapshot()
        assert [one.name for one in found.no_data] == ["mds", "oss99"]
        assert found.oss[99].cpu is None
        assert found.oss[98].cpu == 0.98
        assert (listener.heard.malformed, listener.heard.late, listener.heard.lost) == (0, 0, 0)


def test_oversized_fragmented_or_foreign_messages_are_harmless():
    with Listener(ANY) as listener, ExitStack() as until:
        context = until.enter_context(zmq.Context())
        bad = context.socket(zmq.PUB)
        until.callback(bad.close, 0)
        bad.setsockopt(zmq.LINGER, 0)
        bad.connect(listener.endpoint)
        port = int(listener.endpoint.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        good = until.enter_context(closing(Publisher(listener.endpoint, "oss0", "oss", 60.0)))
        listener.hear(0.3)
        bad.send(TOPIC + b"x" * (2 * LONGEST))
        good.send(state_of(0))
        listener.hear(5.0, until=lambda: bool(listener.snapshot().oss))
        assert [one.name for one in listener.snapshot().oss] == ["oss0"]
        assert listener.heard.malformed == 0, "the connection of what is oversized is closed"
        for _ in range(50):
            bad.send_multipart([TOPIC, b"{}", b"more"])
            bad.send(TOPIC + b"{")
            listener.hear(0.1, until=lambda: listener.heard.malformed >= 2)
            if listener.heard.malformed >= 2:
                break
        assert listener.heard.malformed >= 2
        good.send(state_of(0, cpu=0.75))
        listener.hear(5.0, until=lambda: listener.snapshot().oss[0].cpu == 0.75)
        assert listener.snapshot().oss[0].cpu == 0.75


def test_it_listens_only_on_this_host_by_default():
    assert ENDPOINT == "tcp://127.0.0.1:5570"
    for command, name in ((listen, "at"), (publish, "to")):
        assert next(one.default for one in command.params if one.name == name) == ENDPOINT


@pytest.mark.slow
def test_both_commands_make_a_snapshot_of_this_host(run, desk):
    (desk / "dump").write_text(DUMP)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{one.getsockname()[1]}"
    publishing = [
        sys.executable,
        "-m",
        "vani",
        "plan",
        "publish",
        "--to",
        place,
        "--interval",
        "0.2",
        "--quiet",
    ]
    with (
        subprocess.Popen([*publishing, "--name", "oss0", "--lctl", "dump"]) as oss,
        subprocess.Popen([*publishing, "--name", "m", "--role", "mds"]) as mds,
    ):
        done = run(
            "plan",
            "listen",
            "--at",
            place,
            "--once",
            "--expect",
            "oss0,m",
            "--interval",
            60,
            "-o",
            "now.yaml",
            "-q",
        )
        for one in (oss, mds):
            one.send_signal(signal.SIGTERM)
    assert (done.status, done.out, done.err) == (0, "", "")
    assert (oss.returncode, mds.returncode) == (143, 143)
    found = Snapshot.load(desk / "now.yaml")
    assert found.time is not None
    assert found.oss[0].cpu is not None
    assert found.oss[0].memory is not None
    assert [(one.index, one.size, one.used) for one in found.ost] == [(3, 102400, 25600)]
    assert found.mds is not None
    assert found.mds.memory is not None
    assert found.no_data == []


def test_snapshot_is_rewritten_until_the_listener_ends(desk):
    command = [
        sys.executable,
        "-m",
        "vani",
        "plan",
        "listen",
        "--at",
        ANY,
        "--interval",
        "0.2",
        "-o",
        "now.yaml",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as listening:
        seen = set()
        end = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < end:
            time.sleep(0.05)
            if (desk / "now.yaml").exists():
                seen.add((desk / "now.yaml").stat().st_ino)
                Snapshot.load(desk / "now.yaml")
        listening.send_signal(signal.SIGINT)
        _, said = listening.communicate(timeout=30)
    assert len(seen) >= 3
    assert listening.returncode == 130
    assert said.splitlines()[-1] == "vani: interrupted"
    assert [one.name for one in desk.iterdir()] == ["now.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["listen", "--once", "--at", "nonsense"], "'nonsense': is not an address to listen on or send to"),
        (["listen", "--once", "--at", "tcp://127.0.0.1:99999"], "is not an address to listen"),
        (["listen", "--once", "--at", "inproc://x"], "is not an address to listen"),
        (
            ["listen", "--once", "--at", "tcp://192.0.2.1:5570"],
            "cannot be used (Cannot assign requested address)",
        ),
        (["listen", "--once", "--interval", "nan"], "--interval: is nan"),
        (["listen", "--once", "--expect", "oss["], "'oss[': is not a list of hosts"),
        (["listen", "--once", "--expect", "oss[1-20000]"], "--expect: are 20,000 servers"),
        (["listen"], "without --once it continues: name a file with -o"),
        (["publish", "--to", "nonsense"], "'nonsense': is not an address to listen on or send to"),
        (["publish", "--interval", "-1"], "--interval: is -1"),
        (["publish", "--name", "a\nb"], "--name: is 'a\\nb'"),
        (["publish", "--name", ""], "--name: is ''"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_impossible_requests_give_one_line_and_status_2(run, arguments, said):
    done = run("plan", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.line


def test_port_in_use_is_reported(run):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        done = run("plan", "listen", "--once", "--at", f"tcp://127.0.0.1:{one.getsockname()[1]}")
    assert done.status == 2
    assert "cannot be used (Address already in use); use another port" in done.line


@pytest.mark.parametrize(
    "command", [["listen", "--once"], ["publish", "--count", "1"]], ids=["listen", "publish"]
)
def test_missing_zeromq_is_reported_with_its_installation(run, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "zmq", None)
    done = run("plan", *command)
    assert (done.status, done.line) == (2, "ZeroMQ is not installed; pip install 'vani-io[collector]'")


def test_library_listens_for_the_given_seconds():
    assert centre.plan_listen(ANY, seconds=0.2).oss == []
    with pytest.raises(InputError, match="--expect"):
        centre.plan_listen(ANY, expected="n[1-20000]")


def test_missing_dump_is_refused_before_anything_is_sent(run):
    # Formerly sent without targets and without a message.
    done = run("plan", "publish", "--lctl", "no-such-dump", "--count", 1, "-q")
    assert (done.status, done.line) == (2, "no-such-dump: no such file")
