"""The identity of a page's run, its first picture, and plots that become a line or a sentence."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_inputs import Page, golden, inputs_of, judged, profiled

import vani
from vani.readers.programs import app_of_folder
from vani.render.plots.catalogue import draw
from vani.render.plots.drawing import theme
from vani.render.report.first_picture import first_picture
from vani.render.report.model import prepare
from vani.render.report.page import to_html as page


def said(facts):
    return {fact.label: fact.value for fact in facts}


def test_first_screen_identifies_the_run():
    profile = golden()
    profile = profile.model_copy(update={"job": profile.job.model_copy(update={"id": "4711", "scheduler": "slurm", "nodes": 2})})
    inputs = replace(inputs_of(profile), users=("alice",))
    found = said(prepare(inputs).identity)
    assert found == {
        "Run": "2026-11-21 02:25:32 UTC", "Program": "v3-cm1like-16r", "Job": "slurm 4711", "User": "alice", "Nodes": "2",
        "Traced by": "Recorder 3.0.0", "Trace": "complete",
    }  # fmt: skip
    summary = page(inputs).partition('id="summary"')[2].partition("</section>")[0]
    assert all(value in summary for value in found.values())


def test_missing_facts_about_a_run_are_shown_as_unknown():
    profile = golden()
    traces = [trace.model_copy(update={"start_unix_s": None}) for trace in profile.traces]
    found = said(prepare(inputs_of(profile.model_copy(update={"traces": traces}))).identity)
    assert (found["Run"], found["Job"], found["User"]) == ("date unknown", "unknown", "unknown")


@pytest.mark.parametrize(
    ("folder", "user"),
    [
        ("node01-anna-cm1.exe-4711-093012.123", "anna"),
        ("143000.12-n1-login-01-alice-xhpl-999", "alice"),
        ("093012.12-node01-(null)-cm1.exe-4711", None),
        ("003-mProject", None),
    ],
)
def test_the_user_is_read_off_the_name_of_the_folder(folder, user):
    assert app_of_folder(folder).user == user


def test_a_remark_is_a_line_and_a_recommendation_an_article():
    advice = judged()
    found = [one.model_copy(update={"severity": severity}) for one, severity in zip(advice.recommendations[1:] * 3, ["high", "info", "info"], strict=False)]
    text = page(inputs_of(golden(), advice.model_copy(update={"recommendations": [advice.recommendations[0], *found]})))
    assert re.findall(r'<(article|details) class="advice[^"]*" id="(advice-\d)"', text) == [
        ("article", "advice-1"), ("details", "advice-2"), ("details", "advice-3"),
    ]  # fmt: skip


def test_log_of_counts_shows_job_and_phases():
    profile = golden().model_copy(update={"job": golden().job.model_copy(update={"id": "7", "user": "28751", "command": "mpi-io-test -i 4"})})
    made = prepare(inputs_of(profile))
    assert {"Job": "7", "User": "28751", "Command": "mpi-io-test -i 4"}.items() <= said(made.identity).items()
    # The calls are not available.
    assert made.picture.title == "Phases of I/O over time"
    assert {part.kind for part in made.picture.parts} <= {"read", "write", "mixed", "metadata"}


def test_first_picture_shows_time_by_kind_and_process(tmp_path):
    heat = vani.heat_map("tests/data/traces/v3-ckpt-then-restart-8r", store=tmp_path)
    picture = first_picture(profiled(), heat)
    assert [label for _, label in picture.labels] == [f"rank {rank}" for rank in range(8)]
    assert {words.split()[0] for _, _, words in picture.legend} == {"reading", "writing", "flushing", "metadata"}
    flushing = "".join(part.path for part in picture.parts if part.kind == "sync")
    # Every rank flushes, in each of five checkpoints.
    assert {int(row) for row in re.findall(r"M\d+ (\d+)h", flushing)} == set(range(8))
    answered = {fact.label: fact.value for fact in prepare(inputs_of(profiled(), heat=heat)).answers}
    assert list(answered) == ["Why", "When", "Where", "Data", "Slowest"]
    assert re.fullmatch(r"The slowest 5 % of calls take (about )?\d+ % of the time in calls\.", answered["Slowest"])


def test_plot_of_one_colour_becomes_a_sentence():
    text = page(inputs_of(golden(), judged()))
    assert "data-plot=\"access-patterns\"" not in text
    assert "All 8,072 reads and writes are consecutive" in Page(text).text()
    # The plot is available on request.
    assert draw("access-patterns", golden()).spec["layer"]


def test_balanced_processes_are_a_sentence():
    profile = golden()
    balance = profile.apps[0].balance
    even = balance.model_copy(update={"slowest_io_time_s": balance.mean_io_time_s, "median_io_time_s": balance.mean_io_time_s})
    apps = [profile.apps[0].model_copy(update={"balance": even})]
    found = draw("processes", profile.model_copy(update={"apps": apps}))
    assert found.sentence.startswith("In 1 app no process spends more than 5 % above the mean")
    assert draw("processes", profile).sentence == ""


def test_layers_without_bytes_have_no_row():
    profile = golden()
    layer = profile.interfaces[0]
    idle = layer.model_copy(update={"layer": "hdf5", "bytes": layer.bytes.model_copy(update={"read": 0, "written": 0, "total": 0})})
    made = prepare(inputs_of(profile.model_copy(update={"interfaces": [*profile.interfaces, idle]}))).tables["layers"]
    assert len(made.rows) == len(profile.interfaces)


def test_patterns_have_the_same_hues_on_light_and_on_dark():
    import colorsys  # noqa: PLC0415

    def hue(colour):
        return colorsys.rgb_to_hsv(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]

    for light, dark in zip(theme(dark=False)["range"]["ordinal"], theme(dark=True)["range"]["ordinal"], strict=True):
        assert abs(hue(light) - hue(dark)) < 0.05


def test_slowest_calls_have_their_share_of_time(tmp_path):
    profile = profiled()
    trace = "tests/data/traces/v3-ckpt-then-restart-8r"
    heat = vani.heat_map(trace, store=tmp_path)
    made = prepare(inputs_of(profile, heat=heat)).tables["slow"]
    durations = [row.cells[4].value for row in made.rows]
    assert durations == sorted(durations, reverse=True) and len(durations) > 5
    assert re.match(r"The slowest 5 % of the [\d,]+ calls, [\d,]+ of (about )?\S+ \S+ or more, take (about )?\d+ % of the time", made.caption)
    assert sum(one.calls for one in heat.calls) == profile.workflow.io.ops.all
    for kind in ("read", "write", "metadata", "sync"):
        assert sum(map(sum, getattr(heat.seconds, kind))) == pytest.approx(getattr(profile.workflow.io.time_s, kind))


def test_known_layouts_are_shown():
    profile = golden()
    files = [file.model_copy(update={"stripe_count": 4, "stripe_size": 1 << 20}) for file in profile.files[:2]]
    table = prepare(inputs_of(profile.model_copy(update={"files": files}))).tables["layouts"]
    assert [cell.text for cell in table.rows[0].cells][:3] == ["4", "1.05 MB", "2"]
    assert "layouts" not in prepare(inputs_of(profile)).tables
