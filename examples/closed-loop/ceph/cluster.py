"""A small CephFS on this machine: a monitor, a metadata server, OSDs of a limited rate, and one FUSE client.

    python cluster.py up FOLDER [--osds 8] [--rate 16]     the file system is FOLDER/mnt
    python cluster.py down FOLDER

It needs root, /dev/fuse, and Debian's packages ceph-mon, ceph-osd, ceph-mds, ceph-fuse, ceph-common, attr, iproute2.
All daemons and the client live in a network namespace of their own, in which each OSD has an address with a limited
rate (MB/s, reads and writes together). Data is in memory, without copies, and gone after `down`. `FOLDER/bin/ceph` asks
the cluster. It is a test bed: no authentication, no manager, and times for daemons to answer that suit a busy machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = (
    "ceph", "ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph-authtool", "monmaptool", "setfattr", "tc", "ip",
)  # fmt: skip
PATIENCE_S = 90
MONITOR = "[v2:127.0.0.1:3300,v1:127.0.0.1:6789]"
CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = {monitor}
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
mon allow pool size one = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd crush update on start = false
osd objectstore = memstore
memstore device bytes = 1073741824
# Daemons that wait for a processor are not dead.
osd heartbeat grace = 120
mds beacon grace = 120
mon data avail warn = 1
# An OSD does one request after the other.
osd op num shards = 1
osd op num threads per shard = 1
run dir = {folder}/run
log file = {folder}/log/$name.log
admin socket = {folder}/run/$name.asok
pid file = {folder}/run/$name.pid
mon data = {folder}/mon
mds data = {folder}/mds
osd data = {folder}/$name
keyring = {folder}/keyring
[client]
log file = {folder}/log/client.log
"""
ADDRESSES = "[osd.{number}]\npublic addr = {address}\ncluster addr = {address}\n"


def impossible() -> str:
    """Why there can be no such file system here; empty if it can be started."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0:
        return "only root can start it"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse cannot be opened"


class Cluster:
    """The daemons of a file system in a folder of its own; `osds` OSDs of `rate` MB/s each."""

    def __init__(self, folder: Path, osds: int = 8, rate: int = 16) -> None:
        self.folder, self.osds, self.rate = folder.resolve(), osds, rate
        self.mount = self.folder / "mnt"

    def up(self) -> None:
        """Start it: about half a minute."""
        try:
            self._start()
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Unmount, end the daemons, and remove the data. Logs stay."""
        subprocess.run(["umount", "-l", str(self.mount)], check=False, stderr=subprocess.DEVNULL)
        for file in sorted((self.folder / "run").glob("*.pid")):
            self._end(int(file.read_text() or 0))
        subprocess.run(["umount", str(self.folder / "net")], check=False, stderr=subprocess.DEVNULL)
        for path in self.folder.iterdir():
            if path.name == "mnt":
                path.rmdir()
            elif path.is_dir() and path.name != "log":
                shutil.rmtree(path)
            elif path.is_file():
                path.unlink()

    def _start(self) -> None:
        if self.folder.exists() and any(path.name != "log" for path in self.folder.iterdir()):
            raise SystemExit(f"{self.folder} is not empty")
        for name in ("bin", "log", "mds", "mnt", "mon", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        fsid, keyring, monmap = str(uuid.uuid4()), self.folder / "keyring", self.folder / "monmap"
        self._network()
        text = CONFIGURATION.format(fsid=fsid, folder=self.folder, monitor=MONITOR)
        text += "".join(ADDRESSES.format(number=n, address=_address(n)) for n in range(self.osds))
        (self.folder / "ceph.conf").write_text(text)
        ceph = self.folder / "bin" / "ceph"
        words = ["nsenter", f"--net={self.folder / 'net'}", str(shutil.which("ceph")), "-c", f"{self.folder}/ceph.conf"]
        ceph.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        ceph.chmod(0o755)
        key = ("--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self._run("ceph-authtool", "--create-keyring", str(keyring), *key)
        self._run("monmaptool", "--create", "--addv", "a", MONITOR, "--fsid", fsid, str(monmap))
        self._daemon("ceph-mon", "a", "--mkfs", "--monmap", str(monmap), "--keyring", str(keyring))
        self._daemon("ceph-mon", "a")
        for number in range(self.osds):
            identity = str(uuid.uuid4())
            self.ceph("osd", "new", identity)
            self.ceph("osd", "crush", "add", str(number), "1", "root=default")
            (self.folder / f"osd.{number}").mkdir()
            self._daemon("ceph-osd", str(number), "--mkfs", "--osd-uuid", identity)
            self._daemon("ceph-osd", str(number))
        self._wait(lambda: f'"num_up_osds":{self.osds}' in self.ceph("osd", "stat", "--format=json"), "the OSDs")
        self.ceph("osd", "pool", "create", "meta", "8")
        self.ceph("osd", "pool", "create", "data", str(16 * self.osds))
        self.ceph("fs", "new", "vani", "meta", "data")
        self._daemon("ceph-mds", "m")
        self._wait(lambda: "up:active" in self.ceph("mds", "stat"), "the metadata server")
        self._inside("ceph-fuse", "-c", f"{self.folder}/ceph.conf", str(self.mount))
        self._wait(lambda: os.path.ismount(self.mount), "the mount")
        self._fill_once()

    def _network(self) -> None:
        """A loopback of its own, on which what goes to or comes from an OSD's address has a limited rate."""
        (self.folder / "net").touch()
        self._run("unshare", f"--net={self.folder / 'net'}", "true")
        self._inside("ip", "link", "set", "lo", "up")
        self._inside("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb")
        for number in range(self.osds):
            name, address = f"1:{number + 16:x}", _address(number)
            limit = f"rate {8 * self.rate}mbit burst 128k cburst 128k quantum 65536"
            self._inside(*f"tc class add dev lo parent 1: classid {name} htb {limit}".split())
            self._inside(*f"tc qdisc add dev lo parent {name} pfifo limit 10000".split())
            for prio, side in enumerate(("dst", "src"), 1):
                match = f"protocol ip prio {prio} u32 match ip {side} {address}/32"
                self._inside(*f"tc filter add dev lo parent 1: {match} flowid {name}".split())

    def _fill_once(self) -> None:
        """Write to all OSDs: the first write to a placement group waits until it is ready."""
        folder = self.mount / "first"
        folder.mkdir()
        layout = b"stripe_unit=65536 stripe_count=1 object_size=65536"
        os.setxattr(folder, "ceph.dir.layout", layout)
        with (folder / "file").open("wb") as file:
            file.write(bytes(64 * self.osds << 16))
            os.fsync(file.fileno())
        shutil.rmtree(folder)

    def ceph(self, *words: str) -> str:
        """The output of the `ceph` command."""
        return self._run(str(self.folder / "bin" / "ceph"), *words)

    def _daemon(self, program: str, name: str, *words: str) -> None:
        self._inside(program, "-c", f"{self.folder}/ceph.conf", "-i", name, *words)

    def _inside(self, *words: str) -> str:
        return self._run("nsenter", f"--net={self.folder / 'net'}", *words)

    def _run(self, *words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode:
            raise SystemExit(f"{shlex.join(words)} failed: {done.stderr.strip()[-500:]}")
        return done.stdout

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not is_done():
            if time.monotonic() > end:
                raise SystemExit(f"gave up waiting for {what}; logs: {self.folder / 'log'}")
            time.sleep(0.3)

    def _end(self, process: int) -> None:
        """End a daemon: a process that names this folder's configuration."""
        command = Path(f"/proc/{process}/cmdline")
        with suppress(OSError):
            if f"{self.folder}/ceph.conf".encode() in command.read_bytes().split(b"\0"):
                os.kill(process, signal.SIGKILL)
                end = time.monotonic() + 10
                while command.read_bytes() and time.monotonic() < end:
                    time.sleep(0.1)


def _address(number: int) -> str:
    return f"127.0.1.{number + 1}"


@contextmanager
def cephfs(osds: int = 8, rate: int = 16) -> Iterator[Cluster]:
    """A file system in a new folder, which is removed at the end."""
    # A short path, because the daemons' sockets are in it.
    folder = Path(tempfile.mkdtemp(prefix="vani-ceph-"))
    cluster = Cluster(folder, osds, rate)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Start or end a small CephFS.")
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--osds", type=int, default=8)
    parser.add_argument("--rate", type=int, default=16, help="MB/s of each OSD")
    words = parser.parse_args()
    if reason := impossible():
        raise SystemExit(reason)
    cluster = Cluster(words.folder, words.osds, words.rate)
    if words.action == "down":
        cluster.down()
    else:
        cluster.up()
        print(cluster.mount)


if __name__ == "__main__":
    main()
