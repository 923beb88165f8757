"""Settings in advice that are tried, and the reasons for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.cli.tune_trials import Program, candidates_of, with_trials
from vani.render.tuned import run_line
from vani.schema.advice import Advice, SystemRef, TunableSetting
from vani.schema.tuned import Setting, Tuned, TunedRun

ADVICE = Advice.load(Path(__file__).parents[2] / "examples" / "tune" / "advice.yaml")
DATA = Path("/lustre/run")


def advice(*tunable: TunableSetting, machine: str | None = None) -> Advice:
    return ADVICE.model_copy(
        update={
            "system": SystemRef(name=machine, sha256=""),
            "recommendations": [ADVICE.recommendations[0].model_copy(update={"settings": list(tunable)})] if tunable else [],
            "no_recommendation": [],
        }
    )


def test_layouts_of_the_file_system_are_tried_where_no_rule_names_one():
    (trial,) = with_trials([], ["-c 8"], [])
    assert (trial.setting.layout, trial.reason) == ("-c 8", "the file system offers this layout; no rule can judge it")


@pytest.mark.parametrize(
    ("advised", "tried"),
    [
        (["-c 4 -S 16M", "-c 2 -S 16M"], ["-c 4 -S 16M", "-c 16", "-c 2 -S 16M"]),
        (["-E 64K -L mdt -E -1 -c 1"], ["-E 64K -L mdt -E -1 -c 1", "-c 1"]),
        (["-c 16", "-c 8"], ["-c 16", "-c 8"]),
    ],
)
def test_layout_at_the_end_of_the_advised_direction_comes_before_the_second_choice_of_a_rule(advised, tried):
    layouts = TunableSetting(kind="layout", folder=str(DATA), values=[{"options": words} for words in advised])
    known, _ = candidates_of(advice(layouts), DATA, Program())
    ordered = with_trials(known, ["-c 16", "-c 4", "-c 1", "-c 16 -S 16M"], [])
    assert [item.setting.layout for item in ordered] == tried


def test_staging_is_limited_to_runs_on_one_node():
    staging = TunableSetting(kind="stage_out", folder=str(DATA), values=[{"near": "/tmp"}])
    assert [item.setting.stage_out for item in candidates_of(advice(staging), DATA, Program(nodes=1))[0]] == ["/tmp"]
    for nodes, words in ((2, "this run has 2 nodes"), (None, "an unknown number of nodes")):
        candidates, (refused,) = candidates_of(advice(staging, machine="titan"), DATA, Program(nodes=nodes))
        assert candidates == []
        assert words in refused.why


def test_line_of_a_run_shows_sizes_of_cephfs_and_what_was_added_last():
    layout = "setfattr -n ceph.dir.layout -v 'stripe_unit=2097152 stripe_count=1 object_size=2097152'"
    (candidate,) = with_trials([], [layout], [])
    assert candidate.setting.label == "stripe_unit=2M stripe_count=1 object_size=2M"
    both = candidate.model_copy(update={"setting": candidate.setting.with_(Setting(hints={"cb_nodes": "4"}))})
    tuned = Tuned(
        version="1", begun="", host="n", command=["a"], data="/d", fresh="subfolder", most_runs=5, candidates=[both]
    )
    line = run_line(tuned, TunedRun(number=2, candidates=[0], folder="f", outcome="ended", seconds=3.0), 5)
    assert line.startswith("Run 2        stripe_unit=2M ")
    assert line.endswith("size=2M, cb_nodes 4     3.0 s")


def tried(*command: str) -> list[str]:
    return [item.setting.label for item in with_trials([], [], command)]


def test_libraries_in_the_dynamic_section_name_settings_to_try(tmp_path):
    def linked(*names: bytes) -> list[str]:
        (tmp_path / "program").write_bytes(b"\x7fELF" + b"".join(b"\0" + name for name in names) + b"\0")
        return tried(str(tmp_path / "program"))

    romio = ["romio_cb_write enable", "romio_ds_write disable", "cb_buffer_size 16777216"]
    assert linked(b"libmpich.so.12", b"libc.so.6") == romio
    assert linked(b"libmpi.so.40", b"libhdf5_openmpi.so.103")[0] == "OMPI_MCA_io_ompio_num_aggregators 4"
    assert linked(b"libhdf5_serial.so.103") == ["HDF5_DRIVER core"]
    # Several processes may share a file, which the core driver would overwrite.
    assert linked(b"libmpi.so.12", b"libhdf5.so.310") == romio
    subfiles = ["H5FD_SUBFILING_IOC_PER_NODE 4", "H5FD_SUBFILING_STRIPE_SIZE 4194304"]
    assert linked(b"libmpi.so.12", b"libhdf5.so.310", b"H5Pset_fapl_subfiling") == [*romio, *subfiles]
    assert linked(b"libc.so.6") == []


@pytest.mark.parametrize(
    ("version", "first"),
    [("HYDRA build details", "romio_cb_write enable"), ("mpirun (Open MPI) 5.0", "OMPI_MCA_io_ompio_num_aggregators 4")],
)
def test_mpi_of_a_python_script_is_the_one_of_its_launcher(tmp_path, version, first):
    launcher, script = tmp_path / "mpirun", tmp_path / "solver.py"
    launcher.write_text(f"#!/bin/sh\necho '{version}'\n")
    launcher.chmod(0o700)
    script.write_text("from mpi4py import MPI\nimport h5py\n")
    assert tried(str(launcher), "-n", "4", "python", str(script))[0] == first
    assert not any("HDF5" in label for label in tried(str(launcher), "-n", "4", "python", str(script)))


def test_hdf5_of_a_python_script_may_keep_its_files_in_memory(tmp_path, monkeypatch):
    (tmp_path / "solver.py").write_text("import h5py\n")
    assert tried("python", str(tmp_path / "solver.py")) == ["HDF5_DRIVER core"]
    monkeypatch.setenv("HDF5_DRIVER", "stdio")
    assert tried("python", str(tmp_path / "solver.py")) == []
