"""`vani plot` from a user's view, and how the calls of a profile are found again."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest
from repository import TRACES

import vani
from vani.cli.plot import heat_map
from vani.errors import InputError
from vani.render.plots.catalogue import kinds
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap


@pytest.fixture
def profiled(run, mix, desk):
    """profile.yaml of a trace that still exists."""
    assert run("profile", mix, "-o", "profile.yaml", "-q").status == 0
    return desk / "profile.yaml"


def test_list_names_every_kind(run):
    done = run("plot", "--list")
    assert done.status == 0
    assert [line.split()[0] for line in done.out.splitlines() if line and line[0] not in "*+"] == list(kinds())


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "json"])
@pytest.mark.sampled(1)
def test_a_plot_is_written_and_is_the_same_again(run, profiled, desk, suffix):
    for name in ("a", "b"):
        done = run("plot", "heat-map", profiled, "-o", f"{name}.{suffix}")
        assert (done.status, done.out, done.err) == (0, "", "")
    content, again = ((desk / f"{name}.{suffix}").read_bytes() for name in "ab")
    if suffix == "pdf":
        # The engine lists the images of a page in any order, which moves the offsets of objects.
        content, again = (b"\n".join(sorted(re.sub(rb"\d{10} 0{5} n", b"", one).splitlines())) for one in (content, again))
    assert content == again
    assert (desk / f"a.{suffix}").read_bytes().startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}[suffix])
    assert sorted(p.name for p in desk.iterdir()) == [f"a.{suffix}", f"b.{suffix}", "profile.yaml"]


@pytest.mark.parametrize(("style", "ground", "letters"), [("dark", "#15181b", 11), ("screen", "#ffffff", 11), ("paper", "#ffffff", 10)])
def test_style_and_width_are_followed(run, profiled, desk, style, ground, letters):
    assert run("plot", "ops", profiled, "-o", "x.json", "--style", style, "--width", "127").status == 0
    spec = json.loads((desk / "x.json").read_text())
    assert (spec["width"], spec["config"]["background"]) == (360, ground)
    assert spec["config"]["axis"]["labelFontSize"] == letters


def test_a_pdf_is_as_wide_as_the_paper_needs_it(run, profiled, desk):
    assert run("plot", "ops", profiled, "-o", "x.pdf", "--width", "85").status == 0
    content = (desk / "x.pdf").read_bytes()
    assert content.startswith(b"%PDF") and b"/MediaBox [0 0 241 " in content


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["heatmap", "profile.yaml", "-o", "x.svg"], "no plot is called 'heatmap'; did you mean 'heat-map'?"),
        (["ops", "profile.yaml", "-o", "x.jpg"], "x.jpg: unknown image format '.jpg'; did you mean '.png'?"),
        (["ops", "profile.yaml", "-o", "x"], "x: no image format is named; use a name that ends in .svg, .png, .pdf or .json"),
        (["ops", "profile.yaml"], "Missing option '-o' / '--output'; see `vani plot --help`"),
        (["ops", "nowhere.yaml", "-o", "x.svg"], "nowhere.yaml: no such file"),
        (["ops", ".", "-o", "x.svg"], ".: is not a trace, but has 1 .yaml file; name the folder of a Recorder trace (recorder.dat, or recorder.mt and VERSION), a .darshan log, .pfw files, an archive of OTF2 or a log of strace -f -ttt -T -y"),
        (["ops", "profile.yaml", "-o", "no/x.svg"], "no/x.svg: cannot be written: its folder does not exist; create no first"),
        (["layers", "profile.yaml", "-o", "x.svg", "--store", "no"], "no: no such folder; name a store, or the folder of stores"),
        (["apps", "profile.yaml", "-o", "x.svg"], "profile.yaml: the plot apps cannot be drawn: the workload is one app; the plot data-flow shows which of its processes share files"),
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_wrong_usage_gives_one_line_and_leaves_no_files(run, profiled, desk, arguments, line):
    done = run("plot", *arguments)
    assert (done.status, done.out, done.line) == (2, "", line)
    assert [p.name for p in desk.iterdir()] == ["profile.yaml"]


def test_missing_extra_is_reported_with_its_installation(run, profiled, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = run("plot", "ops", profiled, "-o", "x.svg")
    assert (done.status, done.line) == (2, "images need vl-convert; pip install 'vani-io[plot]'")
    # The specification needs no image.
    assert run("plot", "ops", profiled, "-o", "x.json").status == 0


def test_calls_are_found_in_a_store_when_the_trace_is_gone(run, mix, tmp_path, desk):
    trace = tmp_path / "moved" / "run"
    shutil.copytree(mix, trace)
    assert run("profile", trace, "-o", "p.yaml", "-q", "--store", "calls").status == 0
    shutil.rmtree(trace)
    assert run("plot", "heat-map", "p.yaml", "-o", "x.json", "--store", "calls").status == 0


def test_plot_over_time_without_trace_and_store_gives_a_reason(run, mix, tmp_path, desk, monkeypatch):
    trace = tmp_path / "moved" / "run"
    shutil.copytree(mix, trace)
    assert run("profile", trace, "-o", "p.yaml", "-q").status == 0
    shutil.rmtree(trace)
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "empty"))
    done = run("plot", "heat-map", "p.yaml", "-o", "x.svg")
    assert done.status == 2
    assert "run no longer exists" in done.line and "--store" in done.line
    # Plots that a profile alone supports are still drawn.
    assert run("plot", "transfer-sizes", "p.yaml", "-o", "x.svg").status == 0


def test_changed_trace_is_not_used_for_its_profile(mix, tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    trace = tmp_path / "run"
    shutil.copytree(mix, trace)
    profile = vani.profile(trace)
    shutil.rmtree(trace)
    shutil.copytree(TRACES / "v3-cm1like-16r", trace)
    reason = heat_map(profile)
    assert isinstance(reason, str)
    assert "profile it again" in reason


def test_trace_without_a_store_is_decoded_unless_disabled(mix, tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "one"))
    profile = vani.profile(mix)
    assert isinstance(heat_map(profile, decode=False), str)
    assert isinstance(heat_map(profile), HeatMap)
    assert isinstance(heat_map(profile, store=tmp_path), HeatMap)
    assert isinstance(heat_map(profile, store=tmp_path, decode=False), HeatMap)


def test_store_made_with_convert_is_accepted(mix, tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "one"))
    profile = vani.profile(mix)
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "two"))
    vani.convert(mix, tmp_path / "stores" / "calls")
    for folder in ("stores", "stores/calls"):
        assert isinstance(heat_map(profile, store=tmp_path / folder, decode=False), HeatMap)
    other = vani.profile(TRACES / "v3-cm1like-16r")
    reason = heat_map(other, store=tmp_path / "stores", decode=False)
    assert isinstance(reason, str)
    assert "no store of v3-cm1like-16r" in reason


def test_edited_profile_gets_no_heat_map_with_other_numbers(
    mix, tmp_path, monkeypatch
):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    profile = vani.profile(mix)
    moved = profile.workflow.io.bytes.model_copy(update={"read": 1})
    stats = profile.workflow.io.model_copy(update={"bytes": moved})
    changed = profile.model_copy(update={"workflow": profile.workflow.model_copy(update={"io": stats})})
    assert "the profile differ in bytes" in heat_map(changed)


def test_a_workflow_finds_the_store_of_each_of_its_traces(tmp_path, monkeypatch, desk):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "flow"
    # Two runs of the same program, and so with the same calls.
    for name in ("001-step", "002-step"):
        shutil.copytree(TRACES / "v3-ior-ssf-hdf5-4r", folder / name)
    profile = vani.profile(folder)
    heat = heat_map(profile)
    assert isinstance(heat, HeatMap)
    assert [r.trace for r in heat.rows] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sum(map(sum, heat.written)) == profile.workflow.io.bytes.written


def test_a_missing_store_folder_is_refused(profiled):
    with pytest.raises(InputError, match="no such folder"):
        heat_map(Profile.load(profiled), store="nowhere")
