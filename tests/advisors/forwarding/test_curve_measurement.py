"""The commands that measure a curve, run in a shell with stand-ins and read back as a pattern."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections import Counter

import pytest

from vani.advisors.commands import LAUNCHERS
from vani.advisors.forwarding.io_nodes import forwarded, ior, measure_it
from vani.models.forwarding import Pattern
from vani.units import GiB, KiB, MiB


def options(words):
    found = shlex.split(" ".join(words))
    at = found.index("ior")
    return found[:at], found[at + 1 :]


def value(given, name):
    return given[given.index(name) + 1]


def bytes_of(text):
    return int(text.rstrip("kmg")) * {"k": KiB, "m": MiB, "g": GiB}.get(text[-1], 1)


@pytest.mark.parametrize("scheduler", LAUNCHERS)
@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize(
    ("layout", "order"), [("fpp", "contiguous"), ("shared", "contiguous"), ("shared", "strided")]
)
@pytest.mark.parametrize("request_size", [47008, 32 * KiB, 3 * MiB])
def test_ior_repeats_the_io_of_the_job(scheduler, operation, layout, order, request_size):
    pattern = Pattern(8, 96, layout, order, request_size, operation)
    start, given = options(ior(pattern, 96 * GiB, "/gpfs/a b", LAUNCHERS[scheduler]))
    assert any("12" in word for word in start), "12 processes on each node"
    assert ("-F" in given) is (layout == "fpp")
    assert ("-r" in given) is (operation == "read")
    block, transfer, segments = (bytes_of(value(given, name)) for name in ("-b", "-t", "-s"))
    assert (transfer, block % transfer) == (request_size, 0)
    assert block * segments == pytest.approx(GiB, rel=0.01)
    assert (block == transfer) is (order == "strided"), "a segment is one request of each process"
    assert value(given, "-o") == "/gpfs/a b/ior.curve"


def test_unprintable_folder_is_left_out():
    run = ior(Pattern(1, 1, "fpp", "contiguous", 1), 0, "/tmp/\x1b[2J", LAUNCHERS["slurm"])
    assert run[-1] == "-o ior.curve"


@pytest.mark.skipif(shutil.which("awk") is None, reason="there is no awk")
def test_the_loop_gives_each_number_its_map_and_starts_ior_forwarded(tmp_path):
    for name, lines in {
        "scontrol": "for i in 1 2 3 4 5 6 7 8; do echo n$i; done",
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; "$@"',
        "ior": 'cp "$LIBGKFS_FORWARDING_MAP_FILE" map.$(ls | grep -c "^map") && echo "$LD_PRELOAD $*" >> ran',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    run = ior(Pattern(8, 96, "fpp", "contiguous", MiB), 96 * GiB, "/gpfs", LAUNCHERS["slurm"])
    line = forwarded(run, 8, [1, 2, 8], LAUNCHERS["slurm"])
    subprocess.run(
        ["sh", "-euc", f'PATH="$PWD:$PATH"; SLURM_JOB_NODELIST=x; SLURM_JOB_NUM_NODES=8; {line}'],
        check=True,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,  # The dynamic loader reports that the library is missing.
    )
    maps = [(tmp_path / f"map.{i}").read_text().splitlines() for i in range(3)]
    counts = [Counter(int(one.split()[1]) for one in lines) for lines in maps]
    assert counts == [{0: 8}, {0: 4, 1: 4}, dict.fromkeys(range(8), 1)]
    ran = (tmp_path / "ran").read_text().splitlines()
    assert len(ran) == 3
    assert all(one.startswith("libgkfs_intercept.so -a POSIX -w") for one in ran)


def test_direct_access_is_measured_without_the_library():
    text = measure_it(
        Pattern(8, 96, "fpp", "contiguous", MiB), 96 * GiB, "/gpfs", [0, 1], LAUNCHERS["slurm"], "gekkofwd"
    )
    direct = text.split("for direct access `")[1].split("`")[0]
    assert "ior -a POSIX" in direct
    assert "LD_PRELOAD" not in direct
