"""Baselines: several runs in one small document, from which each can be restored."""

from __future__ import annotations

import pytest
from gate_cases import CM1, GOLDEN, policy, put, tree
from hypothesis import given
from hypothesis import strategies as st

from vani.errors import DocumentError, InputError
from vani.gate.baselines import (
    FILES,
    baseline_of,
    baseline_path,
    expand_name,
    files_to_compare,
    key_figures,
    read_runs,
    refuse_to_overwrite,
    runs_of,
)
from vani.schema.check import Baseline, BaselineRun
from vani.schema.document import dumps, loads

RUN = BaselineRun(version="0", sha256="0")


def document(*trees: dict, strip: tuple[str, ...] = ()) -> Baseline:
    # As saved and read back.
    return loads(dumps(baseline_of([(RUN, one) for one in trees], strip)), Baseline)


value = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([0.5, 1.5]), st.sampled_from(["a", "b"]))
file = st.fixed_dictionaries(
    {"path": st.sampled_from(["/a", "/b", "/c"]), "size": value, "io": st.fixed_dictionaries({"ops": st.fixed_dictionaries({"read": value})})}
)  # fmt: skip
run = st.fixed_dictionaries(
    {
        "workflow": st.fixed_dictionaries({"apps": value, "files": st.fixed_dictionaries({"total": value})}),
        "dataset": st.fixed_dictionaries({"files": value}),
        "files": st.lists(file, max_size=3, unique_by=lambda one: one["path"]),
    }
)


def known(node: object) -> object:
    """A tree without nulls, which a baseline leaves out, and with its files by name."""
    if isinstance(node, list):
        return sorted((known(one) for one in node), key=lambda entry: entry["path"])
    if not isinstance(node, dict):
        return node
    kept = {name: known(below) for name, below in node.items()}
    return {name: below for name, below in kept.items() if below is not None and below != {}}


@given(st.lists(run, min_size=1, max_size=4))
def test_combined_values_are_separated_again(runs):
    apart = runs_of(document(*runs), "x")
    assert [known(one) for one in apart] == [known(one) for one in runs]


def test_exact_counts_of_several_runs_appear_once():
    one, other = tree(), put(tree(), "workflow.runtime_s", 40.0)
    text = dumps(document(one, other))
    assert "runtime_s: [31.4947763, 40.0]" in text
    assert text.count("7800") == dumps(document(one)).count("7800")


def test_a_baseline_is_small():
    sizes = {path.name: (len(path.read_text()), len(dumps(document(tree(path))))) for path in GOLDEN.glob("*.yaml")}
    # Of nearly 720 kB of profiles.
    assert sum(small for _, small in sizes.values()) < 0.5 * sum(large for large, _ in sizes.values())
    many = tree()
    many["files"] = [dict(many["files"][0], path=f"/s/{i}") for i in range(5000)]
    assert len(dumps(document(many))) < 60_000
    assert len(document(many).figures["files"]) == FILES


def test_a_baseline_knows_no_machine_and_no_time():
    text = dumps(document(tree()))
    assert "start_unix_s" not in text
    assert "traces" not in text
    assert text == dumps(document(tree()))


def test_folders_of_jobs_are_stripped_before_saving():
    one = put(tree(), "files.0.path", "/scratch/job17/x")
    assert document(one, strip=("/scratch/job*",)).figures["files"][0]["path"] == "x"


@pytest.mark.parametrize(
    ("figures", "error"),
    [
        ("workflow: {apps: [1, 2, 3]}", "apps has 3 values for 2 runs"),
        ("workflow: {apps: [[1], [2]]}", "apps has 2 values for 2 runs"),
        ("files: [{path: /a, in_runs: [0, 7]}]", "in_runs of an entry of files is not a list of runs"),
        ("files: [{path: /a, in_runs: [true]}]", "in_runs of an entry of files is not a list of runs"),
        ("files: [{path: /a, in_runs: []}]", "in_runs of an entry of files is not a list of runs"),
        ("files: [{path: [/a, /b]}]", "an entry of files has no name"),
    ],
)
def test_a_baseline_that_contradicts_itself_is_refused(tmp_path, figures, error):
    path = tmp_path / "b.yaml"
    runs = "[{version: '0', sha256: ''}, {version: '0', sha256: ''}]"
    path.write_text(f"schema: vani.baseline/1\nruns: {runs}\nfigures: {{{figures}}}\n")
    with pytest.raises(DocumentError, match=error):
        read_runs(path, ())


def test_figures_that_would_fill_the_memory_are_refused(tmp_path):
    path = tmp_path / "b.yaml"
    runs = "- {version: a, sha256: b}\n" * 100
    path.write_text("schema: vani.baseline/1\nruns:\n" + runs + "figures:\n  files:\n" + "  - path: a\n" * 60_000)
    with pytest.raises(DocumentError, match="too many figures"):
        read_runs(path, ())


def test_a_profile_is_a_baseline_of_one_run():
    earlier = read_runs(CM1, ())
    assert len(earlier.runs) == 1
    assert earlier.runs[0]["workflow"]["io"]["ops"]["metadata"] == 76


class TestPlaces:
    def test_the_policy_names_files_folders_and_globs(self, tmp_path):
        (tmp_path / "runs").mkdir()
        for name in ("a.yaml", "b.yaml", "notes.txt"):
            (tmp_path / "runs" / name).write_text("")
        names = lambda found: [path.relative_to(tmp_path).as_posix() for path in found]  # noqa: E731
        both = ["runs/a.yaml", "runs/b.yaml"]
        assert names(expand_name(tmp_path, "runs")) == both
        assert names(expand_name(tmp_path, "runs/*.yaml")) == both
        checks = policy(tmp_path, '[check]\nbaseline = ["runs/b.yaml", "runs"]\n')
        assert names(files_to_compare(checks, ())) == both[::-1]

    def test_missing_baseline_is_an_error(self, tmp_path):
        checks = policy(tmp_path, '[check]\nbaseline = "b.yaml"\n')
        with pytest.raises(InputError, match=r"baseline 'b\.yaml' does not exist; make one with `vani check PROFILE --save`"):
            files_to_compare(checks, ())
        assert files_to_compare(checks, (), missing_ok=True) == []

    def test_default_path_is_next_to_the_policy(self, tmp_path):
        checks = policy(tmp_path, "[check]\n")
        assert files_to_compare(checks, ()) == []
        assert baseline_path(checks) == tmp_path / ".vani" / "baseline.yaml"

    def test_choice_among_several_must_be_given(self, tmp_path):
        checks = policy(tmp_path, '[check]\nbaseline = "runs/*.yaml"\n')
        with pytest.raises(InputError, match="names several files; choose one with -o FILE"):
            baseline_path(checks)

    def test_only_baselines_and_profiles_are_written_over(self, tmp_path):
        path = tmp_path / "x.yaml"
        refuse_to_overwrite(path)
        path.write_text("schema: vani.advice/1\n")
        with pytest.raises(InputError, match="is no baseline: it is not overwritten"):
            refuse_to_overwrite(path)
        path.write_text("schema: vani.baseline/1\n")
        refuse_to_overwrite(path)


def test_key_figures_show_how_far_runs_differ():
    rows = dict(key_figures([tree(), put(tree(), "workflow.runtime_s", 40.0), put(tree(), "workflow.runtime_s", 50.0)]))
    assert rows["workflow.runtime_s"] == "40 s (31.5 s to 50 s)"
    assert rows["workflow.io.ops.metadata"] == "76"
    assert rows["remaining files"] == "6"
