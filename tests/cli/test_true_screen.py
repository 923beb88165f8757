"""The first screen agrees with the calls of the trace and the profile's YAML, on all real traces."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from repository import TRACES
from rich.console import Console

import vani
from vani.calls import FileClass, Flag, Layer
from vani.errors import VaniError
from vani.render.screen import print_profile
from vani.units import format_share

SHARED = Path(__file__).resolve().parents[3] / "shared"


def _traces():
    places = sorted(TRACES.iterdir())
    for folder in ("traces", "traces-new"):
        places += sorted((SHARED / folder).glob("*"))
    names = {p.name: p for p in places if p.is_dir() and "killed" not in p.name and "truncated" not in p.name}
    large = {"v2-medium-smallio-8r", "v3-medium-smallio-8r", "v3-large-smallio-8r", "v3-workflow-montage"}
    return [
        pytest.param(path, id=name, marks=[pytest.mark.slow] if name in large else [])
        for name, path in sorted(names.items())
    ]


def _screen(profile) -> str:
    text = io.StringIO()
    print_profile(profile, Console(file=text, width=200, color_system=None), saved=Path("p.yaml"))
    return text.getvalue()


def _time_by_function(stores) -> Counter[str]:
    """Time of counted calls on files of the data set, by function, directly from the store."""
    found: Counter[str] = Counter()
    for store in stores:
        functions = pq.read_table(store / "_functions.parquet")
        names = dict(zip(*(functions[c].to_pylist() for c in ("func", "name")), strict=True))
        files = pq.read_table(store / "_files.parquet")
        dataset = files.filter(pc.equal(files["class"], int(FileClass.DATASET)))["file"]
        columns = ["func", "layer", "flags", "file", "duration_ns"]
        for part in sorted((store / "calls").glob("*.parquet")):
            calls = pq.read_table(part, columns=columns)
            nested = pc.bit_wise_and(pc.cast(calls["flags"], pa.int64()), int(Flag.NESTED))
            outermost = pc.and_(pc.less_equal(calls["layer"], int(Layer.STDIO)), pc.equal(nested, 0))
            counted = calls.filter(pc.and_(outermost, pc.is_in(calls["file"], value_set=dataset)))
            sums = counted.group_by("func").aggregate([("duration_ns", "sum")])
            for func, lasts in zip(*(sums[c].to_pylist() for c in ("func", "duration_ns_sum")), strict=True):
                found[names[func]] += lasts
    return found


@pytest.mark.parametrize("trace", _traces())
@pytest.mark.sampled(14)
def test_screen_agrees_with_the_calls_and_the_yaml(trace, tmp_path):
    try:
        stores = vani.convert(trace, tmp_path / "store")
        profile = vani.profile(trace)
    except VaniError as error:
        pytest.skip(str(error))
    screen = _screen(profile)
    _the_cause_is_the_function_with_most_time(profile, screen, stores)
    _the_shares_can_be_recomputed(profile, " ".join(screen.split()))


def _the_cause_is_the_function_with_most_time(profile, screen, stores):
    shown = re.search(r"^Why +(\S+): ", screen, re.MULTILINE)
    if shown is None:
        assert not profile.workflow.io.time_s.total
        return
    spent = _time_by_function(stores)
    most, longest = spent.most_common(1)[0]
    # A call that only probed for a missing file is counted separately, although its path looks like any
    # other.
    apart = {call.name: round((call.time_s or 0.0) * 1e9) for call in profile.excluded.io.calls or ()}
    assert spent[shown[1]] >= longest - apart.get(most, 0)


def _the_shares_can_be_recomputed(profile, screen):
    tree = yaml.load(profile.to_yaml(), yaml.CSafeLoader)
    workflow = tree["workflow"]
    shown = re.search(
        r"I/O(?: takes)? ([\d.]+ %)(?: of the run)?( in (?:the slowest process|every process)(?: \(rank \d+\))?)?"
        r"(?:, ([\d.]+ %) in at least one)?",
        screen,
    )
    if shown is None:
        assert not workflow["io"]["time_s"]["total"] or tree["verdict"]["matters"] == "open"
        return
    busy = format_share(min(1.0, workflow["io"]["busy_s"]["total"] / workflow["runtime_s"]))
    slowest = max(app["balance"]["slowest_io_time_s"] for app in tree["apps"] if app["balance"])
    if shown[2]:
        assert shown[1] == format_share(min(1.0, slowest / workflow["runtime_s"]))
    assert (shown[3] or shown[1]) == busy
    calls = workflow["io"]["calls"]
    cause = re.search(r"Why \S+: [\d,]+ calls?, ([\d.]+ %) of the I/O time", screen)
    assert cause[1] == format_share(calls[0]["time_s"] / sum(c["time_s"] for c in calls))
    inside = re.search(r"is inside \S+ calls for ([\d.]+ %) of the run", screen)
    if inside:
        longest = max(app["balance"]["slowest_call_time_s"] for app in tree["apps"] if app["balance"])
        assert inside[1] == format_share(min(1.0, longest / workflow["runtime_s"]))
