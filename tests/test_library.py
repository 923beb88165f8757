"""Vani as a library: the same options as the commands, documents that load and save, frames of the tables."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import vani
from vani.cli.main import commands
from vani.errors import InputError, TraceError
from vani.schema.profile import FRAMES

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "vani" / "demo" / "ior-shared-file-8r"
TRACES = ROOT / "tests" / "data" / "traces"


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> vani.Profile:
    return vani.profile(DEMO, store=tmp_path_factory.mktemp("stores"))


def options_of(name: str) -> set[str]:
    context = commands.make_context("vani", [], resilient_parsing=True)
    command = commands.get_command(context, name)
    assert command is not None
    return {option.name for option in command.params if option.name is not None}


@pytest.mark.parametrize(
    ("command", "model"),
    [
        ("advise", vani.AdviseSettings),
        ("apply", vani.ApplySettings),
        ("check", vani.CheckSettings),
        ("check", vani.SaveSettings),
        ("convert", vani.ConvertSettings),
        ("diff", vani.DiffSettings),
        ("diff", vani.TableSettings),
        ("plot", vani.PlotSettings),
        ("profile", vani.ProfileSettings),
        ("report", vani.ReportSettings),
        ("trace", vani.TraceSettings),
    ],
    ids=str,
)
def test_each_setting_of_the_library_is_an_option_of_the_command(command, model):
    assert set(model.model_fields) <= options_of(command)
    assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_a_profile_saves_and_loads(found, tmp_path):
    found.save(tmp_path / "p.yaml")
    assert vani.Profile.load(tmp_path / "p.yaml") == vani.Profile.load(str(tmp_path / "p.yaml"))
    assert vani.Profile.load(tmp_path / "p.yaml").to_yaml() == found.to_yaml()
    assert (tmp_path / "p.yaml").read_text() == found.to_yaml()


def test_options_have_their_documented_effect(tmp_path):
    trace = TRACES / "v3-posix-mix-4r"
    few = vani.profile(trace, files=2, phase_gap=1000.0, store=tmp_path, scheduler="synchronous")
    assert len(few.files) == 2
    assert len(few.phases) == 1
    assert few.provenance["apps.phase_gap_s"] == "given with --phase-gap"
    # posix_mix touches 57 files; two more paths were only probed.
    assert len(vani.profile(trace, files=None, store=tmp_path).files) == 57
    assert len([path for path in tmp_path.iterdir() if (path / "manifest.json").is_file()]) == 1


def test_progress_is_reported(tmp_path):
    seen = []
    vani.profile(
        DEMO, store=tmp_path, progress=lambda stage, done, total: seen.append((stage, done <= total))
    )
    assert {stage for stage, _ in seen} >= {"decode", "survey", "measure"}
    assert all(within for _, within in seen)


def test_a_job_and_a_system_are_paths_names_or_models(tmp_path):
    from vani.schema.job import Job  # noqa: PLC0415
    from vani.systems import load_system  # noqa: PLC0415

    (tmp_path / "job.yaml").write_text("schema: vani.job/1\nnodes: 4\ncpu_cores_per_node: 40\n")
    by_path = vani.profile(DEMO, store=tmp_path, job=tmp_path / "job.yaml", system="lassen")
    by_model = vani.profile(
        DEMO, store=tmp_path, job=Job.load(tmp_path / "job.yaml"), system=load_system("lassen")
    )
    assert by_path.job.nodes == by_model.job.nodes == 4
    assert by_path.storage == by_model.storage
    assert by_path.storage.shared.type == "gpfs"


@pytest.mark.parametrize("quick", [False, True])
def test_job_yaml_in_the_folder_of_a_trace_is_read(tmp_path, quick):
    trace = Path(shutil.copytree(DEMO, tmp_path / "trace"))
    (trace / "job.yaml").write_text("schema: vani.job/1\nnodes: 4\n")
    (tmp_path / "other.yaml").write_text("schema: vani.job/1\nnodes: 2\n")
    profile = vani.profile(trace, store=tmp_path, quick=quick)
    assert (profile.job.nodes, profile.provenance["job.nodes"]) == (4, "job.yaml")
    assert vani.profile(trace, store=tmp_path, quick=quick, job=tmp_path / "other.yaml").job.nodes == 2
    (trace / "job.yaml").write_text("apiVersion: batch/v1\nkind: Job\n")
    assert vani.profile(trace, store=tmp_path, quick=quick).job.nodes is None
    (trace / "job.yaml").write_text("schema: vani.job/1\nnoeds: 4\n")
    with pytest.raises(InputError, match=r"trace/job.yaml:2: unknown key"):
        vani.profile(trace, store=tmp_path, quick=quick)


@pytest.mark.parametrize("table", ["traces", "apps", "phases", "interfaces", "files"])
def test_a_table_is_a_frame(found, table):
    frame = found.frame(table)
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(getattr(found, table)) > 0


@pytest.mark.parametrize("table", FRAMES)
def test_a_table_of_arrow_has_the_rows_and_columns_of_the_frame(found, table):
    rows, frame = found.table(table), found.frame(table)
    assert rows.num_rows == len(frame)
    assert rows.num_rows == 0 or set(rows.column_names) == set(frame.columns)


@pytest.mark.parametrize("kind", ["table", "frame"])
def test_unknown_table_is_reported_with_the_known_ones(found, kind):
    with pytest.raises(ValueError, match="no table 'nope'; there are unseen, traces, apps"):
        getattr(found, kind)("nope")


def test_without_pandas_the_error_names_the_extra_and_the_table_still_works(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"vani-io\[frames\].*Profile.table"):
        found.frame("files")
    assert found.table("files").num_rows == 1


def test_a_profile_shows_itself_in_one_line_and_as_its_first_screen(found):
    assert repr(found) == str(found)
    assert re.fullmatch(r"<Profile of ior-shared-file-8r: 8 processes, .* s, 134 MB written, 134 MB read>", repr(found))
    first = found.summary().splitlines()
    assert first[0].startswith("ior-shared-file-8r: 8 processes")
    assert first[1].startswith("I/O takes ")
    assert not any(line.startswith("Next") for line in first)
    page = found._repr_html_()
    assert page.startswith("<pre><b>ior-shared-file-8r")
    content = found.model_dump(by_alias=True)
    content["files"][0]["path"] = "/a/<script>\n"
    for owner in (content["apps"][0], content["traces"][0]):
        owner["name" if "name" in owner else "app"] = "a\n<b>"
    text = json.dumps(content).replace('"ior-shared-file-8r"', '"a\\n<b>"')
    hostile = vani.Profile.model_validate(json.loads(text))
    assert "<script>" not in hostile._repr_html_()
    assert "<b>:" not in hostile._repr_html_()
    assert "\n" not in repr(hostile)


def test_frames_have_columns_with_dots(found):
    # IOR with -b 16m, 8 processes: 128 MiB written and read again.
    files = found.frame("files")
    assert files.loc[0, ["path", "io.bytes.read", "io.bytes.written", "processes"]].tolist() == [
        "/lustre/scratch/proj/ior/ssf_posix.dat",
        128 << 20,
        128 << 20,
        8,
    ]


def test_convert_returns_the_stores(tmp_path):
    assert vani.convert(DEMO, tmp_path / "one") == [tmp_path / "one"]
    several = vani.convert(ROOT / "examples" / "coupled", tmp_path / "several")
    assert [path.name for path in several] == ["01a-sim", "01b-weather", "02-analysis", "03-resim"]
    # A store may be made again; anything else must not be overwritten.
    assert vani.convert(DEMO, tmp_path / "one") == [tmp_path / "one"]


def test_advice_comes_from_a_profile_or_its_path(found, tmp_path):
    found.save(tmp_path / "p.yaml")
    from_model = vani.advise(found, system="generic-lustre")
    from_path = vani.advise(tmp_path / "p.yaml", system="generic-lustre")
    assert [one.rule for one in from_model.recommendations] == ["MAT001", "LUS002"]
    # YAML rounds numbers but not settings.
    assert [(one.rule, one.apply) for one in from_model.recommendations] == [
        (one.rule, one.apply) for one in from_path.recommendations
    ]
    assert [rule.rule for rule in vani.advise(found, select=["MAT001"]).recommendations] == ["MAT001"]
    assert "LUS002" not in {rule.rule for rule in vani.advise(found, ignore=["LUS"]).no_recommendation}


def test_errors_share_a_base_class(tmp_path):
    with pytest.raises(InputError):
        vani.profile()
    with pytest.raises(InputError, match="no such file"):
        vani.profile(tmp_path / "nowhere")
    with pytest.raises(TraceError, match="aborted run"):
        vani.profile(TRACES / "v3-killed-2r")
    with pytest.raises(InputError, match="--phase-gap"):
        vani.profile(DEMO, phase_gap=-1)


def test_one_broken_trace_does_not_spoil_a_workload(tmp_path):
    found = vani.profile(DEMO, TRACES / "v3-killed-2r", store=tmp_path)
    assert len(found.traces) == 1
    left_out = [why for key, why in found.provenance.items() if key.startswith("traces[")]
    assert len(left_out) == 1
    assert left_out[0].startswith("left out: ")


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "vani", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"vani, version {vani.__version__}\nkernels: ")


def test_a_store_is_never_put_inside_the_trace(tmp_path):
    trace = tmp_path / "trace"
    shutil.copytree(DEMO, trace)
    with pytest.raises(InputError, match="inside the trace"):
        vani.convert(trace, trace / "store")
    assert not (trace / "store").exists()
