"""`vani tune` and `vani apply` on a real CephFS: what they prove is near the best of a fresh sweep of layouts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "closed-loop" / "ceph"))

import ceph_loop
from cluster import Cluster, cephfs

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ceph_loop.without_programs()), reason=f"no CephFS here: {ceph_loop.without_programs()}"),
]
FILES = 5
"""New files for each layout of a sweep: a hash of their names places the objects."""


@pytest.fixture(scope="module", params=[(8, 16), (4, 24)], ids=lambda param: f"{param[0]}-osds-of-{param[1]}-MB/s")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cephfs(*request.param) as running:
        yield running


def layout_of(folder: Path) -> str:
    return os.getxattr(folder, "ceph.dir.layout").decode().rpartition(" pool=")[0]


def test_layout_proven_for_a_file_on_one_osd_is_within_a_quarter_of_the_best(cluster, tmp_path):
    program = ceph_loop.compiled(tmp_path)
    data = ceph_loop.folder_with(ceph_loop.ONE_OSD, cluster.mount, "it's on one OSD")
    advice, screen = ceph_loop.traced_and_tuned(cluster, program, data, tmp_path)
    assert "rule: CEP001" in advice
    proven = ceph_loop.tuned_layout(tmp_path)
    assert proven in ceph_loop.LAYOUTS, screen
    seconds = ceph_loop.sweep(program, cluster.mount, FILES)
    medians = {layout: median(times) for layout, times in seconds.items()}
    print(f"proven: {proven}", *(f"{layout}: {times}" for layout, times in seconds.items()), sep="\n")  # noqa: T201
    assert medians[proven] <= 1.25 * min(medians.values())
    assert medians[proven] < medians[ceph_loop.ONE_OSD] / 1.5
    if cluster.osds == 8:
        text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        figures = re.search(r"the layout that it proved \| ([0-9.]+) s \| ([0-9.]+) s \|", text)
        assert medians[ceph_loop.ONE_OSD] == pytest.approx(float(figures[1]), rel=0.25)
        assert medians[proven] == pytest.approx(float(figures[2]), rel=0.5)

    assert "ok " in ceph_loop.vani(cluster, tmp_path, "apply", "tuned.yaml")
    assert layout_of(data) == proven
    ceph_loop.vani(cluster, tmp_path, "apply", "tuned.yaml", "--undo")
    assert layout_of(data) == ceph_loop.ONE_OSD


def test_nothing_is_proven_in_the_default_layout(cluster, tmp_path):
    program, data = ceph_loop.compiled(tmp_path), cluster.mount / "plain"
    data.mkdir()
    advice, screen = ceph_loop.traced_and_tuned(cluster, program, data, tmp_path)
    assert "the files have the default layout of CephFS" in advice
    assert "Proven" not in screen
    assert ceph_loop.tuned_layout(tmp_path) == ""
    # The folder has no layout of its own, as before.
    with pytest.raises(OSError, match="No data available"):
        layout_of(data)
