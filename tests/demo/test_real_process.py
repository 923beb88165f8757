"""Processes of the programs of `vani centre demo` with real calls, in a plain folder."""

from __future__ import annotations

import pytest

from vani.centre.demo.cluster import Machinery, Submitted, run_day
from vani.centre.demo.programs import INPUTS, MOUNT, PROGRAMS
from vani.centre.demo.real_process import RealProcess, scaled
from vani.demo.striped_model import MACHINES, MiB

PACE = 1 / 24
BY_NAME = {program.name: program for program in PROGRAMS}


@pytest.mark.parametrize("name", BY_NAME)
def test_real_calls_are_recorded_like_modelled_ones(tmp_path, name):
    process = RealProcess(0, 1, tmp_path / "mount", tmp_path, PACE)
    for path, size in INPUTS.items():
        process.place(path).parent.mkdir(parents=True, exist_ok=True)
        process.place(path).write_bytes(bytes(scaled(size, PACE, MiB)))
    process.compute = lambda seconds: iter(())
    list(BY_NAME[name].steps(process))
    (modelled,) = run_day(Machinery(MACHINES["many slow targets"], 4, 0), [Submitted(1, BY_NAME[name], 0.0)], None)
    counters = {use.path.removeprefix(MOUNT): use.counters for use in modelled.log.uses if use.rank == 0}
    noted = {path.removeprefix(f"{tmp_path}/mount"): use.counters for (path, _), use in process.notes.uses.items()}
    assert noted.keys() == counters.keys()
    for path, use in noted.items():
        assert use.keys() >= {key for key, value in counters[path].items() if value}
        size = use.get("BYTES_WRITTEN", 0) + use.get("BYTES_READ", 0)
        whole = counters[path].get("BYTES_WRITTEN", 0) + counters[path].get("BYTES_READ", 0)
        assert size == scaled(whole, PACE, use["ACCESS1_ACCESS"])
        assert process.place(f"{MOUNT}{path}").stat().st_size == size
