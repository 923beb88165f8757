"""Results of a real, small IO500 (isc26), IOR 4.1 and mdtest 4.1; damaged and older ones are derived from them."""

import re
import shutil
from pathlib import Path

import pytest

import vani
from vani.cli.benchmark import benchmark_result, measured_system
from vani.errors import InputError
from vani.readers.benchmarks import read_output
from vani.schema.system import System
from vani.units import GiB, MiB

DATA = Path(__file__).resolve().parents[1] / "data"
IO500, TEXTS = DATA / "results" / "io500", DATA / "results" / "texts"
PHASES = [
    "ior-easy-write", "mdtest-easy-write", "ior-hard-write", "mdtest-hard-write", "find", "ior-easy-read",
    "mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat", "mdtest-easy-delete", "mdtest-hard-read", "mdtest-hard-delete",
]


@pytest.fixture
def result(tmp_path):
    """The folder written by IO500, which tests may change."""
    return shutil.copytree(IO500, tmp_path / "io500")


def edit(path, *changes):
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def phases(result):
    return {phase.name: phase for phase in result.phases}


def lustre(folder="/scratch/io500", **facts):
    disk = {"name": "scratch", "type": "lustre", "mounts": ["/scratch"], "targets": 24, "metadata_targets": 4} | facts
    system = {"schema": "vani.system/2", "name": "here", "file_systems": [disk], "network": {"bandwidth_per_node": 25e9}}
    return System.model_validate(system)


# ---------------------------------------------------------------- what is read


def test_scored_phases_have_the_rates_of_the_summary():
    found = benchmark_result(IO500)
    assert [phase.name for phase in found.phases] == PHASES
    assert (found.tool, found.score, found.valid, found.nodes, found.processes) == ("io500", 2.040969, False, 1, 4)
    by_name = phases(found)
    assert by_name["ior-easy-write"].rate == 0.294862 * GiB
    assert by_name["ior-easy-write"].per_process == pytest.approx(0.294862 * GiB / 4)
    assert (by_name["find"].rate, by_name["find"].unit) == (12168.069, "operations/s")
    assert [phase.name for phase in found.phases if not phase.valid] == PHASES[:4]
    assert found.problems == []


def test_phase_is_weighed_against_its_counterpart():
    phase = phases(benchmark_result(IO500))["mdtest-hard-delete"]
    assert (phase.other, phase.share) == ("mdtest-easy-delete", pytest.approx(0.722985 / 23.449158))
    # Half of the score is a geometric mean of eight rates, and the score is that of two halves.
    assert phase.score_at_median == pytest.approx((0.30 / phase.share) ** (1 / 16))


def test_the_phase_that_costs_most_score_is_named_first():
    limits = benchmark_result(IO500).limits
    assert limits[0].startswith("mdtest-hard-delete reaches 3.1 % of mdtest-easy-delete")
    assert "75 % reach more, and half reach 30 %, which would make the score 1.15 times as high" in limits[0]
    assert limits[-1].startswith("IO500 calls the run invalid")


def test_ior_has_means_and_mdtest_has_rates():
    ior, mdtest = read_output(TEXTS / "ior.txt"), read_output(TEXTS / "mdtest.txt")
    assert [(o.what, o.rate) for o in ior.outcomes] == [
        ("write", pytest.approx((491.35 + 867.16) / 2 * MiB)),
        ("read", pytest.approx((1492.62 + 600.11) / 2 * MiB)),
    ]
    assert (ior.nodes, ior.processes, ior.options["xfersize"]) == (1, 4, "65536 bytes")
    assert [(o.what, o.rate) for o in mdtest.outcomes][:2] == [("file creation", 6532.271), ("file stat", 19255.838)]
    # With -P, times follow in the same rows.
    with_times = read_output(IO500 / "mdtest-hard-write.txt")
    assert [(o.what, o.rate) for o in with_times.outcomes] == [("file creation", 6492.597), ("tree creation", 14.707)]


@pytest.mark.parametrize("name", ["io500", "texts", "texts/ior.txt", "io500/result_summary.txt"])
def test_advice_is_given_on_a_folder_a_text_and_a_summary(name):
    advice = vani.advise(DATA / "results" / name)
    assert advice.benchmark.limits
    assert advice.verdict is None and len(advice.profile.sha256) == 64


def test_older_names_units_and_layouts_mean_the_same(result):
    summary = result / "result_summary.txt"
    text = re.sub(r"-(?=\w+ )", "_", summary.read_text().replace("GiB/s", "GB/s").replace("kIOPS", "kiops"))
    summary.write_text(text.replace("-", "_"))
    for file in result.glob("*-*.txt"):
        file.rename(file.with_name(file.name.replace("-", "_")))
    old, new = benchmark_result(result), benchmark_result(IO500)
    assert [(p.name, p.rate, p.valid) for p in old.phases] == [(p.name, p.rate, p.valid) for p in new.phases]


def test_texts_of_ior_3_give_processes_and_nodes(tmp_path):
    file = tmp_path / "ior.txt"
    head, rows = (TEXTS / "ior.txt").read_text().split("Options: ")[0], "write     162.04     45.91      45.91      0.1"
    header = "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)"
    file.write_text(f"{head}Summary:\n\tapi                = POSIX\n\tclients            = 160 (16 per node)\n{header}\n{rows}\n")
    output = read_output(file)
    assert (output.processes, output.nodes, output.outcomes[0].rate) == (160, 10, pytest.approx(162.04 * MiB))


# ---------------------------------------------------------------- settings


def test_settings_name_the_folder_and_the_rule_that_explains_them(result):
    for file in result.glob("ior-*.txt"):
        file.write_text(file.read_text().replace("./scratch", "/scratch/io500"))
    edit(result / "result_summary.txt", ("ior-hard-write        0.180670", "ior-hard-write        0.000670"))
    # Its own text would count.
    (result / "ior-hard-write.txt").unlink()
    advice = vani.advise(result, system=lustre(dom_size=65536, overstriping=True))
    by_rule = {entry.rule: entry for entry in advice.recommendations}
    assert set(by_rule) == {"MIO001", "LUS004", "LUS007"}
    assert by_rule["LUS004"].severity == "high"
    assert by_rule["LUS004"].apply[-1] == "lfs setstripe -C 96 -S 1M /scratch/io500/ior-hard"
    assert by_rule["LUS007"].apply[-1] == "lfs mkdir -c 4 /scratch/io500/mdtest-hard"
    assert "# collective = TRUE" in by_rule["MIO001"].apply
    assert by_rule["MIO001"].recommended["cb_nodes"] == 4
    assert [entry.rule for entry in advice.no_recommendation] == ["LUS006"]


def test_file_system_settings_need_a_machine():
    advice = vani.advise(IO500)
    assert advice.recommendations == []
    reasons = {entry.rule: entry.why for entry in advice.no_recommendation}
    assert "name the machine with --system" in reasons["LUS007"]


def test_a_machine_gets_the_measured_rates_and_their_sources(result):
    for file in result.glob("ior-*.txt"):
        file.write_text(file.read_text().replace("./scratch", "/scratch/io500"))
    own = measured_system(result, system=lustre(max_bandwidth={"read": 5e10, "write": 1e8}))
    (disk,) = own.file_systems
    assert disk.max_bandwidth.write == pytest.approx(0.294862 * GiB)
    # A known higher value is kept.
    assert disk.max_bandwidth.read == 5e10
    assert disk.bandwidth_per_client.read == pytest.approx(0.839687 * GiB)
    assert disk.metadata_ops_per_s == 10203.096
    assert "ior-easy-write, 1 node, 4 processes" in own.source_of("file_systems[0].max_bandwidth.write")
    assert own.source_of("file_systems[0].max_bandwidth.read") is None


# ---------------------------------------------------------------- beside a trace


def test_benchmark_figure_is_shown_next_to_the_traces(tmp_path):
    profile = vani.profile(DATA / "traces" / "v3-posix-mix-4r")
    advice = vani.advise(profile, ior_output=TEXTS / "ior.txt")
    wrote = advice.benchmark.agreement[0]
    traced = profile.workflow.io.bandwidth.write_synced or profile.workflow.io.bandwidth.write
    assert (wrote.what, wrote.trace) == ("write", traced)
    assert wrote.share == pytest.approx((491.35 + 867.16) / 2 * MiB / traced)
    assert wrote.sentence.startswith("IOR says 712 MB/s of write, ")
    # The text in a trace's folder is used.
    folder = shutil.copytree(DATA / "traces" / "v3-posix-mix-4r", tmp_path / "trace")
    shutil.copy(TEXTS / "ior.txt", folder)
    assert vani.advise(folder).benchmark.agreement == advice.benchmark.agreement


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("at", "what"), [(0.0, "has no result"), (0.5, "ends before its first result")]
)
def test_text_truncated_before_its_results_is_refused(tmp_path, at, what):
    text = (TEXTS / "mdtest.txt").read_text()
    (tmp_path / "m.txt").write_text(text[: int(at * len(text))])
    with pytest.raises(InputError, match=what):
        benchmark_result(tmp_path / "m.txt")


def test_text_truncated_within_its_results_is_read_with_a_note(tmp_path):
    text = (TEXTS / "ior.txt").read_text()
    (tmp_path / "i.txt").write_text(text[: text.index("read      600.11")])
    found = benchmark_result(tmp_path / "i.txt")
    assert len(found.phases) == 2
    assert found.problems == ["i: ends before IOR's or mdtest's last lines"]


def test_shortened_summary_keeps_its_phases_and_their_number(result):
    text = (result / "result_summary.txt").read_text()
    (result / "result_summary.txt").write_text(text[: text.index("[RESULT]        ior-hard-read")])
    found = benchmark_result(result)
    assert (len(found.phases), found.score) == (7, None)
    assert found.problems == ["result_summary.txt ends before its score: 7 of 12 phases are there"]
    (result / "result_summary.txt").write_text(text[:60])
    with pytest.raises(InputError, match=r"result_summary\.txt: has no line with \[RESULT\] \(cut off"):
        benchmark_result(result)


@pytest.mark.parametrize("damaged", ["0.294862.1", "9" * 400, "..."])
def test_damage_is_lost_alone(result, damaged):
    edit(result / "result_summary.txt", ("0.294862 GiB/s", f"{damaged} GiB/s"), ("TOTAL 2.040969", f"TOTAL {damaged}"))
    found = benchmark_result(result)
    assert ([phase.name for phase in found.phases], found.score) == (PHASES[1:], None)


def test_impossible_numbers_of_nodes_are_not_read(tmp_path):
    ior = (TEXTS / "ior.txt").read_text().replace("nodes               : 1", "nodes               : " + "1" * 5000)
    (tmp_path / "i.txt").write_text(ior)
    assert benchmark_result(tmp_path / "i.txt").nodes is None
    mdtest = (TEXTS / "mdtest.txt").read_text().replace("with 4 total task", f"with {'4' * 5000} total task")
    (tmp_path / "m.txt").write_text(mdtest)
    with pytest.raises(InputError, match="has no result of IO500, IOR or mdtest"):
        benchmark_result(tmp_path / "m.txt")


def test_mixed_or_unknown_units_are_reported(result):
    edit(result / "result_summary.txt", ("0.839687 GiB/s", "901.6070 GiB/s"))
    found = benchmark_result(result)
    assert phases(found)["ior-easy-read"].rate == pytest.approx(859.84 * MiB, rel=0.01)
    assert "which counts" in found.problems[0]
    edit(result / "result_summary.txt", ("0.294862 GiB/s", "0.294862 furlongs/s"))
    with pytest.raises(InputError, match=r"ior-easy-write is in 'furlongs/s', which is not known"):
        benchmark_result(result)


def test_a_table_of_ior_in_another_unit_is_converted_or_refused(tmp_path):
    text = (TEXTS / "ior.txt").read_text()
    (tmp_path / "a.txt").write_text(text.replace("bw(MiB/s)", "bw(GB/s) "))
    assert read_output(tmp_path / "a.txt").outcomes[0].rate == pytest.approx((491.35 + 867.16) / 2 * 1e9)
    (tmp_path / "b.txt").write_text(text.replace("bw(MiB/s)", "bw(bit/s)"))
    with pytest.raises(InputError, match=r"its rates are in 'bit/s', which is not known"):
        read_output(tmp_path / "b.txt")


def test_json_of_ior_is_refused_by_name():
    with pytest.raises(InputError, match=r"is IOR's JSON; run IOR without -O summaryFormat"):
        benchmark_result(DATA / "results" / "ior.json")


def test_unlistable_folder_is_left_to_the_reader_of_the_trace(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        vani.advise(tmp_path)


def test_unreadable_file_in_a_folder_does_not_affect_others(tmp_path):
    folder = shutil.copytree(TEXTS, tmp_path / "texts")
    text = (folder / "ior.txt").read_text()
    (folder / "cut.txt").write_text(text[: text.index("Options")])
    found = benchmark_result(folder)
    assert found.problems == ["cut.txt: ends before its first result (IOR and mdtest print them at the end)"]
    assert len(found.phases) == 2 + 6
