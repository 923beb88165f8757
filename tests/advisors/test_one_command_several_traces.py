"""One command gets one stripe count and size, whichever tracer version recorded it."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"

SAME = {
    "ior -a POSIX -w -r -b 4m -t 1m -s 4": (
        "v2-ipc-ior-ssf-posix-8r",
        "v25g-ior-ssf-posix-8r",
        "v3-noipc-ior-ssf-posix-8r",
    ),
    "ior -a MPIIO -c -w -r -b 1m -t 256k -s 8": ("v2-ior-ssf-mpiio-coll-8r", "v3-ior-ssf-mpiio-coll-8r"),
    "ior -a HDF5 -w -r -b 2m -t 512k -s 2": ("v2-ior-ssf-hdf5-4r", "v3-ior-ssf-hdf5-4r"),
}


def stripes(trace: str, system: str) -> object:
    advice = vani.advise(vani.profile(TRACES / trace), system=system, select=["LUS002"], thresholds=SMALL)
    if advice.recommendations:
        return advice.recommendations[0].recommended
    return advice.no_recommendation[0].why


# The shared traces are small: judged as if they were large, and slow.
SMALL = {"LUS002": {"min_bytes": 1 << 20, "enough": 1e12, "collective_enough": 1e12}}


@pytest.mark.skipif(not TRACES.exists(), reason="the shared traces are not here")
@pytest.mark.parametrize("system", ["tianhe-prototype", "generic-lustre"])
@pytest.mark.parametrize("command", SAME)
@pytest.mark.sampled(3)
def test_stripes_match_the_command(command, system):
    found = {trace: stripes(trace, system) for trace in SAME[command]}
    first = next(iter(found.values()))
    assert isinstance(first, dict)
    assert set(map(str, found.values())) == {str(first)}
