"""For the same run, a machine of which less is known never gets a larger number than one whose rates are known."""

from __future__ import annotations

import pytest
from builders import file, profile, shared

import vani
from benchmarks.data import DATA, SHARED, aiio
from vani.systems import known_systems, load_system
from vani.units import GiB, KiB, MiB

MACHINES = [(name, load_system(name)) for name in known_systems()]


def _knows_rates(machine) -> bool:
    """True if a file system has measured or published rates."""
    disks = () if machine.generic else machine.file_systems
    rates = [rate for disk in disks for rate in (disk.bandwidth_per_target, disk.max_bandwidth)]
    return any(rate.read or rate.write for rate in rates)


def _gains(run, machine):
    """Least number by rule; rules without a number are left out."""
    gains: dict[str, list[float]] = {}
    for entry in vani.advise(run, system=machine).recommendations:
        if entry.gain is not None and entry.rule != "MAT001" and entry.gain.speedup is not None:
            ends = (entry.gain.low, entry.gain.speedup, entry.gain.high)
            gains.setdefault(entry.rule, []).append(max(end for end in ends if end is not None))
    return {rule: max(numbers) for rule, numbers in gains.items()}


def _check(run) -> int:
    """Compare all machines, and return the number of gains with a number on machines whose rates are known."""
    known = [_gains(run, machine) for _, machine in MACHINES if _knows_rates(machine)]
    for name, machine in [*((n, m) for n, m in MACHINES if not _knows_rates(m)), ("no machine", None)]:
        for rule, most in _gains(run, machine).items():
            least = min((gains[rule] for gains in known if rule in gains), default=most)
            assert most <= least * (1 + 1e-9), f"{rule} promises {most:.3g} on {name}, {least:.3g} where more is known"
    return sum(map(len, known))


RUNS = {
    "small writes of one process each": [
        file(f"/d/out.{i}", written=64 * MiB, transfer=4 * KiB, time_s=40, busy_s=40) for i in range(8)
    ],
    "small interleaved writes": [
        shared("/d/out", processes=8, written=GiB, transfer=8 * KiB, stride=64 * KiB, strided=1, consecutive=0,
               time_s=400, busy_s=50),
    ],
    "one writer": [shared("/d/out", processes=8, writers=1, written=4 * GiB, transfer=MiB, time_s=60, busy_s=60)],
    "small reads": [shared("/d/in", processes=8, read=4 * GiB, transfer=16 * KiB, time_s=300, busy_s=40)],
    "flushes": [file("/d/log", written=64 * MiB, transfer=64 * KiB, sync_ops=1024, sync_s=30, time_s=32, busy_s=32)],
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("nodes", [None, 2])
def test_machine_without_rates_never_promises_more(name, nodes):
    _check(profile(RUNS[name], processes=8, nodes=nodes, runtime_s=100, slowest_s=60, busy_s=60))


def test_machines_with_rates_get_numbers():
    files = [file("/lustre/out", written=GiB, transfer=64 * KiB - 1, time_s=5, busy_s=5)]
    assert _check(profile(files, processes=1, slowest_s=None, runtime_s=10, busy_s=5)) > 0


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the logs are not here")
@pytest.mark.parametrize("job", ["66082102", "66186370", "66168155"])
def test_log_from_a_machine_without_rates_never_promises_more(job):
    _check(aiio(job))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the traces are not here")
@pytest.mark.parametrize("name", ["applog-recorder", "h5many-recorder", "indep-recorder", "rank0-recorder", "pfw-headers"])
def test_trace_from_a_machine_without_rates_never_promises_more(name):
    if not (SHARED / "cases" / name).exists():
        pytest.skip("the trace is packed")
    _check(vani.profile(SHARED / "cases" / name))
