"""Records of logs as Vani reads them agree with PyDarshan, counter by counter and record by record."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from pydarshan import pydarshan_calls, pydarshan_records

from vani.readers.darshan.log import Log, open_log
from vani.readers.darshan.record_layouts import largest
from vani.readers.darshan.records import Records, calls_of, read_records
from vani.readers.signatures import NO_VALUE

LOGS = sorted((Path(__file__).parents[1] / "data" / "darshan").glob("*.darshan"))
SHARED = Path(__file__).parents[2] / ".." / "shared"
PLAIN = ("version", "exe", "ranks", "start_s", "end_s", "mounts", "partial", "names", "hosts", "user", "job_id", "metadata")
NOT_SWAPPED = ("POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME")
"""`darshan-util` does not swap these bytes in big-endian logs with records of POSIX before version 4."""
CUT = {
    2: ("POSIX_F_FASTEST_RANK_TIME", "POSIX_F_SLOWEST_RANK_TIME", "POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"),
    3: ("POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"),
}
"""Times that `darshan-util` loses during conversion and reads as 0, by version of POSIX records."""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("darshan") is None, reason="PyDarshan is not installed")


def alike(own: dict[str, np.ndarray] | None, other: dict[str, np.ndarray] | None, where: str) -> None:
    assert (own is None) == (other is None), where
    for name, column in (other or {}).items():
        assert own[name].dtype == column.dtype, (where, name)
        np.testing.assert_array_equal(own[name], column, f"{where} {name}")


def assert_same(log: Log, own: Records, other: Records) -> None:
    for name in PLAIN:
        assert getattr(own, name) == getattr(other, name), name
    np.testing.assert_array_equal(own.ids, other.ids)
    assert own.modules.keys() == other.modules.keys()
    version = log.version_of("POSIX") if log.has("POSIX") else 4
    wrong = {*CUT.get(version, ()), *(NOT_SWAPPED if version < 4 and log._order == ">" else ())}
    for name, module in other.modules.items():
        mine = own.modules[name]
        np.testing.assert_array_equal(mine.id, module.id)
        np.testing.assert_array_equal(mine.rank, module.rank)
        # Vani leaves out impossible numbers: one log has bytes of a time where a size that occurs 0 times should be.
        counters = {n: np.where(v > largest(n), NO_VALUE, v) for n, v in module.counters.items()}
        alike(dict(mine.counters), counters, name)
        times = {n: v for n, v in module.times.items() if n not in wrong}
        alike(dict(mine.times), times, name)
        assert mine.times.keys() == module.times.keys()
    alike(own.layouts, other.layouts, "layouts")
    alike(own.targets, other.targets, "targets")
    alike(own.calls, other.calls, "calls")
    alike(own.heat, other.heat, "heat")


def compared(path: Path) -> None:
    log = open_log(path)
    assert_same(log, read_records(log), pydarshan_records(path))
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        other = pydarshan_calls(path, module)
        assert (other is None) == (not log.has(module))
        if other is not None:
            calls, hosts = calls_of(log, module)
            alike(calls, other[0], module)
            assert hosts == other[1]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_all_records_agree_with_pydarshan(path):
    compared(path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
@pytest.mark.slow
def test_all_records_of_all_shared_logs_agree_with_pydarshan():
    logs = sorted(SHARED.rglob("*.darshan"))
    assert len(logs) > 150
    for path in logs:
        compared(path)
