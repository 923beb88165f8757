"""Snapshots: the present state of a machine, and documents that contradict themselves."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import DocumentError
from vani.schema.document import dump


def written(folder: Any, **more: Any) -> Any:
    tree: dict[str, Any] = {
        "schema": "vani.snapshot/1",
        "oss": [{"name": "oss0", "cpu": 0.2, "memory": 0.3}],
        "ost": [{"index": 0, "oss": "oss0", "size": 10 << 30, "used": 0, "load": 0.1}],
        "forwarding": [{"name": "fwd1", "peak": {"iobw": 2.5e9}, "load": 0.1}],
        "storage": [{"name": "sn1", "ost": [0]}],
        "reach": {"fwd1": ["sn1"]},
    }
    path = folder / "now.yaml"
    path.write_text(yaml.safe_dump(tree | more))
    return path


def test_missing_figures_are_null(tmp_path):
    found = Snapshot.load(written(tmp_path, mds={"cpu": 0.4}))
    assert (found.ost[0].state, found.ost[0].peak, found.storage[0].load) == ("ok", None, None)
    assert found.mds is not None
    assert found.mds.memory is None


TARGET = {"index": 0, "oss": "oss0", "size": 10, "used": 0}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"ost": [TARGET, dict(TARGET)]}, "OST 0 appears twice; leave one of them out"),
        ({"ost": [TARGET | {"used": 11}]}, "OST 0 uses 11 of 10 bytes; give `used` of at most `size`"),
        (
            {"ost": [TARGET | {"oss": "oss9"}]},
            "OST 0 names the OSS 'oss9', which is not there; add that OSS",
        ),
        (
            {"storage": [{"name": "sn1", "ost": [7]}]},
            "storage node 'sn1' names the OST 7, which is not there; add that OST",
        ),
        (
            {"storage": [{"name": "sn1", "ost": [0]}, {"name": "sn2", "ost": [0]}]},
            "OST behind a storage node 0 appears twice; leave one of them out",
        ),
        (
            {"reach": {"fwd9": []}},
            "reach names the forwarding node 'fwd9', which is not there; add that forwarding node",
        ),
        (
            {"reach": {"fwd1": ["sn9"]}},
            "reach of 'fwd1' names the storage node 'sn9', which is not there; add that storage node",
        ),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(tmp_path, more, line):
    path = written(tmp_path, **more)
    with pytest.raises(DocumentError) as caught:
        Snapshot.load(path)
    assert str(caught.value) == f"{path}: {line}"


@pytest.mark.parametrize("load", [float("nan"), float("inf"), -0.1, 1.1])
def test_load_outside_0_to_1_is_refused(tmp_path, load):
    with pytest.raises(DocumentError, match="load"):
        Snapshot.load(written(tmp_path, ost=[TARGET | {"load": load}]))


def test_snapshot_survives_writing_and_reading(tmp_path):
    for time in ("2026-01-01T00:00:00Z", "2026-01-01T12:30:00.5+02:00", "2026-01-01T00:00:00", None):
        found = Snapshot.load(written(tmp_path, time=time))
        assert (found.time is None) == (time is None)
        dump(found, tmp_path / "again.yaml")
        assert Snapshot.load(tmp_path / "again.yaml") == found
