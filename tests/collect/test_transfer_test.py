"""The test of one node's rates: its writes, its leftovers, and when it refuses to run."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vani.collect import transfer_test
from vani.collect.node import NoAnswer
from vani.collect.stripe_sweep import PATTERNS, _tasks, counts_of, sweep
from vani.collect.system import detect
from vani.collect.transfer_test import Measurement, measure
from vani.errors import InputError
from vani.schema.document import loads
from vani.schema.system import StripeCurve, System
from vani.units import GiB, MiB

VANI = [sys.executable, "-m", "vani", "systems", "detect"]


def run(*arguments):
    return subprocess.run(
        [*VANI, *map(str, arguments)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def open_files(files):
    for one in files.iterdir():
        # Some are closed in the meantime.
        with contextlib.suppress(FileNotFoundError):
            yield str(one.readlink())


def test_folder_is_written_and_read_and_leaves_no_files(tmp_path):
    found = measure(tmp_path, 130 * MiB)
    assert found.write > 0
    assert found.read > 0
    # Each of two streams moves whole transfers.
    assert found.method.startswith("128MiB by 2 streams with separate files, transfers of 4MiB, ")
    assert found.notes == ()
    assert list(tmp_path.iterdir()) == []


def test_reads_avoid_the_page_cache_without_direct_io(tmp_path, monkeypatch):
    real, flags, dropped = os.open, [], []

    def refuse(path, how, mode):
        flags.append(bool(how & os.O_DIRECT))
        if how & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, how, mode)

    monkeypatch.setattr(transfer_test.os, "open", refuse)
    monkeypatch.setattr(transfer_test.os, "posix_fadvise", lambda *told: dropped.append(told[3]))
    found = measure(tmp_path, 16 * MiB)
    assert flags == [True, False]
    assert dropped == [os.POSIX_FADV_DONTNEED]
    assert "1 stream, transfers of 4MiB, buffered, flushed at the end, dropped from the cache" in found.method
    assert list(tmp_path.iterdir()) == []


def test_slow_folder_is_abandoned_after_a_while(tmp_path, monkeypatch):
    real = os.pwrite

    def slow(*told):
        time.sleep(0.3)
        return real(*told)

    monkeypatch.setattr(transfer_test.os, "pwrite", slow)
    found = measure(tmp_path, 16 * MiB, limit_s=0.5)
    assert re.fullmatch(r"writing( and reading)? was cut short after 0.5 s", found.notes[0])
    # One transfer or two, depending on how busy this machine is.
    assert re.match("[48]MiB by 1 stream", found.method)
    assert found.write < 8 * MiB / 0.3


def test_a_folder_with_little_room_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer_test, "space_of", lambda _: (10**12, 10 * GiB - 1))
    with pytest.raises(InputError, match=r"10.7 GB are free: the test writes 1.07 GB, and needs 10 times"):
        measure(tmp_path, GiB)
    monkeypatch.setattr(transfer_test, "space_of", lambda _: None)
    with pytest.raises(InputError, match="its free space is not known"):
        measure(tmp_path, GiB)
    assert list(tmp_path.iterdir()) == []


def test_quota_that_ends_the_test_is_named_and_no_files_are_left(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(transfer_test.os, "pwrite", full)
    with pytest.raises(InputError, match=r"the test failed \(Disk quota exceeded\); its files are removed"):
        measure(tmp_path, 128 * MiB)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_an_interrupted_test_leaves_no_file_and_no_description(tmp_path, number):
    folder, output = tmp_path / "scratch", tmp_path / "system.yaml"
    folder.mkdir()
    # Reads and writes during the whole test; the kernel's own list shows the files without a name.
    slow = (
        "import sys, time; from vani.collect import transfer_test as t; real = t.os.pwrite\n"
        "t._write = lambda *a: (time.sleep(0.2), real(*a))[1]\n"
        "from vani.cli.main import main; sys.argv[0] = 'vani'; sys.exit(main())"
    )
    command = [sys.executable, "-c", slow, "systems", "detect", "--measure", str(folder), "--yes"]
    process = subprocess.Popen(
        [*command, "--size", "64M", "-o", str(output)], stderr=subprocess.PIPE, text=True
    )
    files = Path(f"/proc/{process.pid}/fd")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if any("vani-measure" in one for one in open_files(files)):
            break
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert ("vani: interrupted" in said) == (number == signal.SIGINT)
    assert list(folder.iterdir()) == []
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--measure", "HERE"],
            "--measure means writing 4G to HERE and reading it again, at most 120 s: .*; add --yes",
        ),
        (["--measure", "HERE/gone", "--yes"], "HERE/gone: no such folder"),
        (["--measure", "HERE", "--size", "many", "--yes"], "--size many is not a size; use a size such as 4G"),
        (
            ["--measure", "HERE", "--size", "1M", "--yes"],
            "out of range; use a size between 16M and 256G",
        ),
        (["--size", "1G"], "--size, --sweep and --yes need --measure"),
    ],
)
@pytest.mark.sampled(2)
def test_inconsistent_or_meaningless_requests_are_refused(tmp_path, arguments, said, monkeypatch):
    done = run(*(one.replace("HERE", str(tmp_path)) for one in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert re.search(said.replace("HERE", re.escape(str(tmp_path))), done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_user_is_asked_on_a_terminal(tmp_path):
    ours, its = pty.openpty()
    os.write(ours, b"n\n")
    command = [*VANI, "--measure", str(tmp_path), "--size", "16M"]
    done = subprocess.run(command, stdin=its, capture_output=True, text=True, check=False)
    os.close(its)
    os.close(ours)
    assert "this loads the file system for all users. Continue? [y/N]" in done.stderr
    assert "nothing was measured" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


def test_command_states_what_it_does_and_its_results(tmp_path):
    done = run("--measure", tmp_path, "--size", "16M", "--yes")
    assert done.returncode == 0
    first, second = done.stderr.splitlines()[:2]
    assert first.startswith(f"vani: writing 16M to {tmp_path} and reading it again, at most 120 s")
    assert re.match(r"vani: write [\d.]+ [kMGT]?B/s, read [\d.]+ [kMGT]?B/s: 16MiB by 1 stream", second)
    system = loads(done.stdout, System)
    assert "other rates are not measured" in system.description
    assert [one for one in system.burst_buffers if one.bandwidth_per_node.write] or [
        one for one in system.file_systems if one.bandwidth_per_client.write
    ]


MOUNTS = """1 0 0:1 / / rw - ext4 /dev/sda rw
2 1 0:3 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
3 1 0:3 / /lustre/scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
4 1 0:6 / /mnt/nvme rw - xfs /dev/nvme0n1 rw
"""


def nothing(command):
    raise NoAnswer(f"{command[0]} is not installed")


@pytest.mark.parametrize(
    ("folder", "place"),
    [
        ("/scratch/me", "file_systems[0].bandwidth_per_client"),
        # Another mount of the same device has the same rate.
        ("/home/me", "burst_buffers[0].bandwidth_per_node"),
        ("/mnt/nvme/x", "burst_buffers[1].bandwidth_per_node"),
    ],
)
def test_rates_belong_to_the_storage_of_the_folder(tmp_path, folder, place):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    (tmp_path / "tmp").mkdir()
    measured = Measurement(
        Path(folder), 2e9, 1e9, "4GiB by 8 streams, direct I/O", ("writing was cut short",)
    )
    system, _ = detect({}, tmp_path, programs=nothing, measured=measured)
    kind, index, key = re.match(r"(\w+)\[(\d)\]\.(\w+)", place).groups()
    rates = getattr(getattr(system, kind)[int(index)], key)
    assert (rates.write, rates.read) == (2e9, 1e9)
    told = system.sources[place]
    assert re.match(
        rf"measured in {folder} on \d{{4}}-\d\d-\d\d: 4GiB by 8 streams, direct I/O; writing was", told
    )
    others = [*(one.bandwidth_per_client for one in system.file_systems)]
    others += [one.bandwidth_per_node for one in system.burst_buffers]
    assert sum(one.write is not None for one in others) == 1


@pytest.mark.slow
def test_sweep_measures_each_count_of_each_pattern_twice_and_leaves_no_files(tmp_path):
    made = []

    def note(folder, count):
        made.append((folder, count))
        assert list(folder.iterdir()) == []

    curves = sweep(tmp_path, 64 * MiB, 2, set_stripes=note)
    assert [count for _, count in made] == [1, 2, 1, 2] * 3
    assert len({folder for folder, _ in made}) == 12
    # Processes of one node share their locks, so pieces in turn show nothing.
    kinds = [(curve.calls, curve.layout, curve.order) for curve in curves]
    assert kinds == [
        ("independent", "shared", "contiguous"),
        ("collective", "shared", "contiguous"),
        ("independent", "file_per_process", "contiguous"),
    ]
    for curve in curves:
        assert [point.stripe_count for point in curve.points] == [1, 2]
        assert all(point.bandwidth > 0 for point in curve.points)
        assert (curve.nodes, curve.processes_per_node, curve.operation) == (1, 8, "write")
    assert list(tmp_path.iterdir()) == []


LAUNCHER = """
import os, runpy, socket, subprocess, sys
if os.environ.get("NODE") is None:
    begun = [subprocess.Popen([sys.executable, *sys.argv], env=os.environ | {"NODE": f"n{rank // 2}", "PMI_SIZE": "4"}) for rank in range(4)]
    sys.exit(max(process.wait() for process in begun))
socket.gethostname = lambda: os.environ["NODE"]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_a_launcher_begins_the_processes_of_several_nodes(tmp_path, monkeypatch):
    # The name of this machine may not resolve here.
    monkeypatch.setattr("socket.gethostname", lambda: "127.0.0.1")
    (tmp_path / "launch.py").write_text(LAUNCHER)
    data = tmp_path / "data"
    data.mkdir()
    written = []
    curves = sweep(
        data,
        64 * MiB,
        2,
        launcher=shlex.join([sys.executable, str(tmp_path / "launch.py")]),
        set_stripes=lambda *stripes: written.append(stripes),
    )
    assert {(curve.nodes, curve.processes_per_node) for curve in curves} == {(2, 2)}
    assert [curve.order for curve in curves] == ["contiguous", "contiguous", "strided", "contiguous"]
    assert list(data.iterdir()) == []


def test_a_size_that_fills_no_targets_is_refused(tmp_path):
    with pytest.raises(InputError, match="files of 8MiB in total fill fewer than two targets each; give a larger --size"):
        sweep(tmp_path, 8 * MiB, 32, set_stripes=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("launcher", "said"),
    [("no-such-launcher", "no-such-launcher: the launcher cannot be run"), ("sh -c 'echo not here; exit 1'", "not here")],
)
def test_failing_launcher_is_named_and_leaves_no_files(tmp_path, launcher, said):
    with pytest.raises(InputError, match=said):
        sweep(tmp_path, 64 * MiB, 2, launcher=launcher, set_stripes=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_processes_write_what_the_pattern_describes(tmp_path):
    for pattern in PATTERNS:
        tasks = _tasks(pattern, tmp_path, 64 * MiB, 4)
        covered = {}
        for task in tasks:
            for number in range(task["pieces"]):
                covered.setdefault(task["path"], []).append(task["begin"] + number * task["step"])
        own = pattern.layout == "file_per_process"
        assert len(covered) == (4 if own else 1)
        for begins in covered.values():
            # Each byte exactly once.
            assert sorted(begins) == [number * tasks[0]["piece"] for number in range(len(begins))]
        in_turn = [task["begin"] // task["piece"] for task in tasks] == [0, 1, 2, 3]
        assert in_turn == (pattern.name in ("collective", "strided"))


def test_sweep_requests_the_existing_targets():
    assert counts_of(24) == [1, 2, 4, 8, 16]
    assert counts_of(1) == [1]
    assert counts_of(500, nodes=4)[-1] == 128
    assert counts_of(None)[-1] == counts_of(5000)[-1] == 32


def test_curve_belongs_to_the_measured_file_system(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /scratch rw - lustre a:/s rw\n")
    points = [{"stripe_count": 1, "bandwidth": 1e9}, {"stripe_count": 8, "bandwidth": 3e9}]
    curve = StripeCurve(calls="independent", nodes=1, points=points)
    measured = Measurement(Path("/scratch/me"), 1e9, 2e9, "as a test says")

    def nobody(*_):
        raise NoAnswer("not here")

    system, _ = detect({}, tmp_path, programs=nobody, measured=measured, curves=[curve])
    assert system.file_systems[0].stripe_curves == [curve]
    assert "measured in /scratch/me" in system.source_of("file_systems[0].stripe_curves")


@pytest.mark.slow
def test_a_sweep_is_of_measure_and_of_lustre(tmp_path):
    assert "--size, --sweep and --yes need --measure" in run("--sweep").stderr
    assert "--launcher needs --sweep" in run("--measure", tmp_path, "--launcher", "srun", "--yes").stderr
    refused = run("--measure", tmp_path, "--size", "16M", "--sweep", "--yes", "-q")
    assert refused.returncode == 2
    assert "--sweep measures stripe counts of Lustre" in refused.stderr
    assert list(tmp_path.iterdir()) == []
