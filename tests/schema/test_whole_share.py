"""The share of a workload that a profile of damaged traces covers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from vani.schema.damage import UNKNOWN_LOSS, damage, whole_share
from vani.schema.profile import Profile

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "v3-cm1like-16r.yaml"


def of(*traces, refused=0) -> Profile:
    """A profile of traces with `problems`, `ranks`, `records`; `refused` more could not be read."""
    whole = Profile.load(GOLDEN)
    made = [
        whole.traces[0].model_copy(
            update={"ranks": 10, "records": 900, "complete": not one.get("problems"), "problems": []} | one
        )
        for one in traces
    ]
    notes = {f"traces[/t/{i}]": "left out: is what an aborted run leaves" for i in range(refused)}
    return whole.model_copy(update={"traces": made, "provenance": whole.provenance | notes})


def problems(*said, **more):
    return {"problems": list(said)} | more


@pytest.mark.parametrize(
    ("traces", "refused", "share"),
    [
        ([{}], 0, 1.0),
        ([problems("rank 3: left out, 3.cst: damaged", "rank 4: left out, 4.cst: damaged")], 0, 0.8),
        ([problems("rank 3: 100 calls left out, the time stamps end before them")], 0, 0.9),
        # Sometimes more calls than ranks are lost, sometimes more ranks than calls.
        ([problems("rank 3: 300 of 310 calls left out, the time stamps end before them")], 0, 0.75),
        ([problems("ranks 0 to 4: 100 calls left out, part.3.parquet: a page is no whole page")], 0, 0.5),
        # The size of the loss is unknown.
        ([problems("a.parquet: left out, it is not a whole Parquet file (cut)")], 0, UNKNOWN_LOSS),
        ([problems(complete=False)], 0, UNKNOWN_LOSS),
        ([problems("rank 3: 2 of 9 calls left out, cut", "rank 4: left out, 4.cst: damaged")], 0, UNKNOWN_LOSS),
        # Traces are weighted by their processes, and unreadable ones by the average of the others.
        ([{}, problems("rank 3: left out, 3.cst: damaged", ranks=30)], 0, (10 + 29) / 40),
        ([{}, {}], 2, 0.5),
    ],
)  # fmt: skip
def test_whole_share_of_damaged_traces(traces, refused, share):
    found = of(*traces, refused=refused)
    assert whole_share(found) == pytest.approx(share)
    assert (damage(found) is None) == (share == 1.0)


def test_no_trace_means_no_loss():
    assert whole_share(SimpleNamespace(traces=[], provenance={})) == 1.0
