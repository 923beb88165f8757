"""Activity by process and time from each source: what Darshan's heat map, DXT and counts alone can show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import vani
from vani.cli.convert import events
from vani.cli.plot import heat_map
from vani.errors import InputError
from vani.render.plots.catalogue import draw
from vani.render.plots.drawing import Drawing, Missing
from vani.schema.profile.storage import Mount, TargetUse

LOGS = Path(__file__).resolve().parents[1] / "data" / "darshan"
DXT, HEAT, COUNTS = (
    LOGS / name
    for name in ("v3-ior-ssf-posix-8r.darshan", "v3-ior-large16m-ssf-2r.darshan", "old/mpi-io-test-x86_64-2.3.1.darshan.gz")
)


@pytest.fixture(scope="module")
def activity():
    """Profile and activity of each log."""
    return {log: (vani.profile(log), heat_map(log)) for log in (DXT, HEAT, COUNTS)}


@pytest.mark.parametrize("kind", ["heat-map", "bandwidth", "io-time", "offsets", "rates", "call-times", "data-flow", "phases"])
def test_every_plot_over_time_is_drawn_from_dxt(activity, kind):
    profile, heat = activity[DXT]
    assert isinstance(draw(kind, profile, heat=heat), Drawing)


def test_dxt_moves_the_bytes_of_the_counts(activity):
    profile, heat = activity[DXT]
    moved = profile.workflow.io.bytes
    assert (sum(map(sum, heat.read)), sum(map(sum, heat.written))) == (moved.read, moved.written)
    assert (heat.source, len(heat.sampled), len(heat.rows)) == ("data", 256, 8)
    assert "without other calls and stdio" in heat.note


@pytest.mark.parametrize(("kind", "is_drawn"), [("heat-map", True), ("bandwidth", True), ("io-time", False), ("offsets", False)])
def test_a_heat_map_alone_gives_bytes_over_time_and_no_calls(activity, kind, is_drawn):
    profile, heat = activity[HEAT]
    drawn = draw(kind, profile, heat=heat)
    assert isinstance(drawn, Drawing) == is_drawn
    assert is_drawn or "DXT_ENABLE_IO_TRACE=1" in drawn.why


def test_bins_of_a_heat_map_are_those_of_the_log(activity):
    profile, heat = activity[HEAT]
    moved = profile.workflow.io.bytes
    # The program also printed 2,195 bytes, which are not on a file of the data set.
    assert (sum(map(sum, heat.read)), sum(map(sum, heat.written))) == (moved.read, moved.written + 2195)
    assert heat.bin_s >= 0.05 and heat.seconds is None and not heat.calls and not heat.sampled


def test_counts_alone_name_the_remedy_and_the_page_says_it_once(activity):
    profile, heat = activity[COUNTS]
    assert isinstance(heat, str) and "DXT_ENABLE_IO_TRACE=1" in heat
    assert isinstance(draw("heat-map", profile, heat=heat), Missing)
    page = vani.report(COUNTS)
    assert page.count("the log has counts and no times of calls") == 1 and "The log has counts" not in page


def test_calls_of_dxt_become_a_store_and_a_timeline(tmp_path):
    (store,) = vani.convert(DXT, tmp_path / "store")
    assert pq.read_table(store / "calls").num_rows == 256
    assert events(DXT, tmp_path / "run.json").calls == 256


@pytest.mark.parametrize("log", [HEAT, COUNTS])
def test_a_log_without_calls_is_not_converted(tmp_path, log):
    with pytest.raises(InputError, match=r"no (times of )?calls") as error:
        vani.convert(log, tmp_path / "store")
    assert "DXT_ENABLE_IO_TRACE=1" in error.value.todo
    assert not (tmp_path / "store").exists()


def test_the_slowest_target_is_named(activity):
    profile, _ = activity[DXT]
    uses = [TargetUse(target=t, files=9, bytes=9 << 20, read_s=0.0, write_s=s) for t, s in ((14, 546.0), (8, 13.6))]
    mount = Mount(dir="/lustre", type="lustre", median_read_s=0.0, median_write_s=13.6, slowest_targets=uses)
    storage = profile.storage.model_copy(update={"mounts": [mount]})
    drawn = draw("targets", profile.model_copy(update={"storage": storage}))
    assert drawn.description == "OST 14 (9 files) takes 9 min 6 s per file; the median target takes 13.6 s."


def test_a_limit_of_memory_ends_only_the_process_that_draws(tmp_path):
    """V8 reserves more than 4 GiB of addresses, and ends its process where it gets none."""
    command = f"ulimit -v 4194304; exec '{sys.executable}' -m vani"
    done = subprocess.run(f"{command} report '{DXT}' -q -o page.html", shell=True, cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert "Pictures for browsers without scripts: no image can be drawn" in (tmp_path / "page.html").read_text()
    plotted = subprocess.run(
        f"{command} plot ops '{DXT}' -o ops.svg", shell=True, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert plotted.returncode == 2
    assert plotted.stderr.splitlines()[-1].startswith("vani: no image can be drawn: ")
