"""Rates in a machine's description that a run refutes."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from tests.traces.darshan_families import FAMILIES
from tests.traces.darshan_writer import Log, log_bytes
from vani.advisors.placement import with_observed_rates
from vani.schema.profile import Profile
from vani.schema.system import FileSystem, Rates, System


def profile_of(folder: Path, app: str, scale: float = 1.0) -> Profile:
    family = next(family for family in FAMILIES if family.app == app)
    records, layouts = family.write(f"/scratch/u/{app}", family.processes, scale)
    path = folder / "a.darshan"
    path.write_bytes(log_bytes(Log("/bin/x", family.processes, 1_800_000_000, 900.0, records=records, layouts=layouts)))
    return vani.profile(path)


def machine(per_target: float) -> System:
    rates, whole = (Rates(read=rate, write=rate) for rate in (per_target, 40 * per_target))
    disk = FileSystem(name="s", type="lustre", mounts=["/scratch"], bandwidth_per_target=rates, max_bandwidth=whole)
    return System(name="m", generic=False, file_systems=[disk])


def test_faster_run_corrects_the_description(tmp_path):
    # All 40 targets at 550 MB/s each; half a gigabyte per process may still be in memory.
    slow = machine(100e6)
    (disk,) = with_observed_rates(slow, profile_of(tmp_path, "lattice")).file_systems
    assert 450e6 < disk.bandwidth_per_target.write <= 550e6
    assert disk.max_bandwidth.write == pytest.approx(40 * disk.bandwidth_per_target.write)
    assert disk.bandwidth_per_target.read == 100e6
    assert slow == machine(100e6)


def test_slower_runs_and_bytes_in_memory_correct_no_estimate(tmp_path):
    enough = machine(1e9)
    assert with_observed_rates(enough, profile_of(tmp_path, "lattice")) is enough
    slow = machine(1e6)
    # 336 MiB per process: its node may keep them all in memory.
    assert with_observed_rates(slow, profile_of(tmp_path, "lattice", 0.055)) is slow


def test_undescribed_figures_remain_unknown(tmp_path):
    unknown = System(name="m", generic=False, file_systems=[FileSystem(name="s", type="lustre", mounts=["/scratch"])])
    assert with_observed_rates(unknown, profile_of(tmp_path, "lattice")) is unknown
