"""Every rule answers for every trace: an advice's two lists together name all rules, and every line makes sense."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from vani.advisors.catalogue import rules
from vani.advisors.judge import advise_document
from vani.errors import InputError
from vani.models.io_time import io_time

SHARED = Path(__file__).resolve().parents[3] / "shared"
FAST = (
    "v2-posix-mix-nonmpi",
    "v25g-mpiio-mix-4r",
    "v3-ior-hdf5-coll-8r",
    "v3-mpiio-mix-4r",
    "v3-netcdf-pnetcdf-4r",
)
MACHINES = (None, "generic-lustre", "lassen")


def traces() -> list[pytest.ParameterSet]:
    found = [
        *sorted(path for path in (SHARED / "traces").glob("v*") if path.is_dir()),
        *sorted(path for path in (SHARED / "traces-parquet").glob("*") if path.is_dir()),
    ]
    return [
        pytest.param(path, id=path.name, marks=() if path.name in FAST else pytest.mark.slow)
        for path in found
    ] or [pytest.param(None, id="none", marks=pytest.mark.skip(reason="the shared traces are not here"))]


def check_gains(advice, time):
    """Check that gains are seconds of the run: none exceeds the first line's, and neither does their sum."""
    slack = 1e-9 * (1 + time.runtime_s)
    matter, *others = advice.recommendations
    assert matter.rule == "MAT001"
    if matter.expected is None:
        # Activity that the trace did not record has no bound.
        assert matter.current["matters"] == "open"
        return
    bound = matter.expected.before - matter.expected.after
    assert bound == pytest.approx(time.calls_s)
    together = 0.0
    for one in others:
        if one.gain is None:
            continue
        won = one.gain.before - one.gain.after
        assert one.gain.high <= 10 * one.gain.low * (1 + 1e-6)
        assert one.gain.before <= time.runtime_s + slack
        assert one.gain.before <= (time.calls_s if one.rule == "MIO002" else time.slowest_s) + slack
        assert 0 <= won <= bound + slack
        together += won
        # Nothing below a second is urgent.
        assert won >= 1 or one.severity in ("low", "info")
    assert together <= bound + slack


@pytest.mark.parametrize("trace", traces())
def test_every_rule_answers(trace, tmp_path):
    from vani.cli.profile import profile  # noqa: PLC0415
    from vani.systems import load_system  # noqa: PLC0415

    try:
        found = profile(trace, store=tmp_path)
    except InputError as error:
        # An aborted trace is refused with a next step, and there is nothing to advise on.
        pytest.skip(str(error))
    time = io_time(found)
    assert time.slowest_s <= time.busy_s <= time.runtime_s
    assert time.slowest_s <= time.calls_s <= time.runtime_s
    for machine in MACHINES:
        advice = advise_document(found, None if machine is None else load_system(machine))
        named = {one.rule for one in (*advice.recommendations, *advice.no_recommendation)}
        assert named == {rule.id for rule in rules()}
        for one in advice.recommendations:
            assert one.target.path is None or not one.target.path.startswith(
                ("/etc", "/usr", "/proc", "/sys")
            )
            # A program with one process gets no advice about MPI.
            assert not (found.workflow.processes == 1 and one.rule.startswith("MIO"))
            for line in one.apply:
                shlex.split(line, comments=True)
        check_gains(advice, time)
        assert all(one.why and not one.why.endswith(".") for one in advice.no_recommendation)
