"""A report on a run that touches no file."""

from __future__ import annotations

import re
from functools import cache

from report_inputs import golden, inputs_of

import vani
from vani.render.plots.catalogue import kinds
from vani.render.report.model import prepare
from vani.render.report.page import to_html as page
from vani.render.report.text import to_text as text
from vani.schema.profile import Profile


def without(value, key=""):
    """A document without a call: counts and times are 0, and attributes that need calls are null."""
    if isinstance(value, dict):
        if "ops_share" in value:
            value = {**value, "ops_share": None, "time_share": None, "access_pattern": None}
        return {name: without(entry, name) for name, entry in value.items()}
    if key in ("read", "written", "write", "metadata", "total"):
        return 0 if isinstance(value, (int, float)) else None
    return value


@cache
def nothing():
    """A real profile changed as if the run had touched no file."""
    document = golden().model_dump(by_alias=True)
    for entity in (document["workflow"], *document["apps"], document["dataset"]):
        stats = without(entity["io"])
        stats["transfer_size"] = {"read": None, "write": None}
        stats["bandwidth"] = {"read": None, "write": None}
        entity["io"] = stats
    document["workflow"]["files"] = dict.fromkeys(document["workflow"]["files"], 0)
    for app in document["apps"]:
        app |= {"interface": None, "phase_gap_s": None}
        app["balance"] |= dict.fromkeys(
            ("slowest_io_time_s", "mean_io_time_s", "median_io_time_s", "slowest_call_time_s"), 0.0
        )
    sizes = {"known": 0, "min": None, "p50": None, "p90": None, "max": None, "histogram": {}}
    document["dataset"] |= {"size": None, "files": 0, "format": {}, "size_distribution": sizes}
    return Profile.model_validate(document | {"files": [], "phases": [], "interfaces": [], "verdict": None})


def test_first_screen_states_that_io_does_not_matter():
    advice = vani.advise(nothing(), system="generic-lustre")
    made = text(inputs_of(nothing(), advice))
    assert "No I/O on files of a data set." in made
    assert "Nothing needs to be done." in made
    assert "most in rank" not in made


def test_no_process_is_called_the_slowest():
    assert prepare(inputs_of(nothing())).tables["balance"].rows == ()


def test_every_omitted_plot_states_its_reason_once():
    made = page(inputs_of(nothing()))
    alone = made.count("<strong>Not drawn.</strong>")
    titles = [plot.title for plot in kinds().values()]
    together = re.findall(r'<p class="missing">Not drawn: ([^.]*)\.', made)
    # The first screen gives the reason of all plots over time.
    over_time = sum(plot.needs is not None for plot in kinds().values())
    assert made.count("No plots over time: ") == 1
    assert alone + sum(title in line for title in titles for line in together) + over_time == len(titles)
    assert all(", " in line for line in together)


def test_an_unknown_value_is_listed_with_the_reason_of_the_profile():
    gaps = {name: gap.reason for gap in prepare(inputs_of(golden())).gaps for name in gap.attributes}
    assert gaps["job.nodes"] == golden().provenance["job.nodes"]
    known = golden().model_copy(update={"job": golden().job.model_copy(update={"nodes": 2})})
    assert "job.nodes" not in {name for gap in prepare(inputs_of(known)).gaps for name in gap.attributes}
