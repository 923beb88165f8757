"""Settings in advice that are tried, and the reasons for the others."""

from __future__ import annotations

from pathlib import Path

from vani.cli.tune_trials import Program, candidates_of, trials_of
from vani.schema.advice import Advice, SystemRef, TunableSetting

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
    (trial,) = trials_of(["-c 8"], [], [])
    assert (trial.setting.layout, trial.reason) == ("-c 8", "the file system offers this layout; no rule can judge it")
    assert trials_of(["-c 4"], [], [trial]) == []


def test_staging_is_limited_to_runs_on_one_node():
    staging = TunableSetting(kind="stage_out", folder=str(DATA), values=[{"near": "/tmp"}])
    assert [item.setting.stage_out for item in candidates_of(advice(staging), DATA, Program(nodes=1))[0]] == ["/tmp"]
    for nodes, words in ((2, "this run has 2 nodes"), (None, "an unknown number of nodes")):
        candidates, (refused,) = candidates_of(advice(staging, machine="titan"), DATA, Program(nodes=nodes))
        assert candidates == []
        assert words in refused.why


def test_libraries_in_the_dynamic_section_name_settings_to_try(tmp_path):
    def tried(*names: bytes) -> list[str]:
        (tmp_path / "program").write_bytes(b"\x7fELF" + b"".join(b"\0" + name for name in names) + b"\0")
        return [item.setting.label for item in trials_of([], ["mpiexec", str(tmp_path / "program")], [])]

    assert tried(b"libmpich.so.12", b"libc.so.6") == [
        "romio_cb_write enable", "romio_ds_write disable", "cb_buffer_size 16777216"
    ]  # fmt: skip
    assert tried(b"libmpi.so.40", b"libhdf5_openmpi.so.103")[0] == "OMPI_MCA_io_ompio_num_aggregators 4"
    assert tried(b"libc.so.6") == []
