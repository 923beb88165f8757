"""The guides on readers, measures and rules of one's own are right: their examples work."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
from distribution import declared, install
from guides import GUIDES, steps

import vani
from vani.advisors import catalogue
from vani.analyzers.passes.measure_workload import all_measures
from vani.cli.main import main
from vani.errors import InputError, TraceError, UnknownFormatError
from vani.readers import open as opening
from vani.readers import open_workload
from vani.readers.open import has_part
from vani.readers.trace_reader import Format

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "examples" / "05-own-analyzer-and-rule"

# Counted by hand: rank 0 writes 3 x 100 bytes, rank 1 reads them at once; the longest call takes 40 us.
CALLS = """\
0,open,/s/out,,,0,10000
0,write,/s/out,0,100,20000,40000
0,write,/s/out,100,100,70000,5000
0,write,/s/out,200,100,80000,5000
0,close,/s/out,,,90000,1000
1,open,/s/out,,,100000,10000
1,read,/s/out,0,300,120000,20000
1,close,/s/out,,,150000,1000
"""

SMALL = ROOT / "tests" / "data" / "traces" / "v3-posix-mix-nonmpi"

FAULTY = """
from vani.readers.trace_reader import Format

def probe(path):
    raise KeyError("magic")

FORMAT = Format("bad", probe, open)
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed distributions, and the example reader next to it."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.setattr(sys, "path", [str(place), str(ROOT / "examples"), *sys.path])
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    importlib.invalidate_caches()
    catalogue.rules.cache_clear()
    catalogue.patterns.cache_clear()
    opening._plug_ins.cache_clear()
    yield place
    catalogue.rules.cache_clear()
    catalogue.patterns.cache_clear()
    opening._plug_ins.cache_clear()


@pytest.fixture
def plugin(site, monkeypatch):
    install(PLUGIN, site, monkeypatch)
    importlib.invalidate_caches()


@pytest.fixture
def trace(tmp_path, site):
    """A trace of calls.csv, whose reader is installed as a plug-in."""
    declared(site, {"vani.readers": {"csv": "csv_reader:CSV"}})
    folder = tmp_path / "two-ranks"
    folder.mkdir()
    (folder / "calls.csv").write_text(CALLS)
    return folder


def test_the_example_reader_makes_a_profile(trace):
    profile = vani.profile(trace)
    io = profile.workflow.io
    assert (profile.traces[0].tool, profile.traces[0].records, profile.workflow.processes) == ("csv", 8, 2)
    assert (io.bytes.read, io.bytes.written, io.footprint.written) == (300, 300, 300)
    assert (io.ops.read, io.ops.write, io.ops.metadata) == (1, 3, 4)
    # 10 + 40 + 5 + 5 + 1 us by rank 0, 10 + 20 + 1 us by rank 1.
    assert io.time_s.total == pytest.approx(92e-6)
    assert profile.apps[0].process_dependencies.edges == 1
    assert profile.provenance["io.bytes"] == "calls.csv has requested bytes"


def test_example_reader_reports_lines_without_calls(trace):
    (trace / "calls.csv").write_text("0,fly,/s/out,,,0,1\n")
    with pytest.raises(TraceError, match=r"calls\.csv: line 1 is no call; see"):
        vani.open_trace(trace)


def test_single_file_trace_is_profiled_like_a_folder(trace):
    alone, folder = vani.profile(trace / "calls.csv"), vani.profile(trace)
    assert alone.traces[0].records == 8
    assert alone.workflow == folder.workflow


def test_traces_of_plug_ins_are_found_in_a_folder_of_traces(trace, tmp_path):
    shutil.copytree(SMALL, tmp_path / "recorder")
    files = tmp_path / "files"
    files.mkdir()
    (files / "calls.csv").write_text(CALLS)
    (files / "notes.txt").write_text("x")
    (tmp_path / "all").mkdir()
    for place in (trace, tmp_path / "recorder", files):
        place.rename(tmp_path / "all" / place.name)
    found = open_workload([tmp_path / "all"])
    assert [(reader.path.name, reader.tool) for reader in found.readers] == [
        ("files", "csv"),
        ("recorder", "recorder"),
        ("two-ranks", "csv"),
    ]
    assert found.refused == []


def test_plug_in_trace_file_is_found_next_to_others(trace, tmp_path, monkeypatch):
    csv_reader = importlib.import_module("csv_reader")
    lines = Format("lines", lambda path: path.suffix == ".lines" and path.is_file(), csv_reader.CsvReader)
    monkeypatch.setattr(csv_reader, "CSV", lines)
    several = tmp_path / "several"
    several.mkdir()
    for name in ("b10.lines", "b9.lines", ".hidden.lines", "notes.txt"):
        (several / name).write_text(CALLS)
    assert [r.path.name for r in open_workload([several]).readers] == ["b9.lines", "b10.lines"]


def test_no_output_is_written_over_a_part_of_a_trace_of_a_plug_in(trace):
    (trace / "profile.yaml").write_text("x")
    for name, is_part in (("calls.csv", True), ("profile.yaml", False)):
        state = (trace / name).stat()
        assert has_part(trace, name, state.st_dev, state.st_ino) == is_part
        # The file alone is also a trace.
        assert has_part(trace / "calls.csv", name, state.st_dev, state.st_ino) == is_part


def test_plug_ins_are_loaded_only_if_no_built_in_format_fits(site, monkeypatch):
    (site / "heavy_format.py").write_text("raise SystemExit('loaded')")
    declared(site, {"vani.readers": {"heavy": "heavy_format:FORMAT"}})
    assert vani.open_trace(SMALL).tool == "recorder"
    assert [reader.tool for reader in open_workload([SMALL]).readers] == ["recorder"]
    with pytest.raises(SystemExit, match="loaded"):
        opening._plug_ins()


def test_all_formats_are_listed_built_in_ones_first(trace):
    assert [known.name for known in (*opening.BUILT_IN, *opening._plug_ins().formats)] == ["recorder", "parquet", "darshan", "dftracer", "otf2", "strace", "csv"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import gone_library", "cannot be loaded (ModuleNotFoundError: No module named 'gone_library' at "),
        ("FORMAT = 'bad'", "entry point 'bad' is not a vani.readers.trace_reader.Format"),
    ],
)
def test_unloadable_format_is_named_if_no_other_fits(site, tmp_path, code, said):
    sys.modules.pop("bad_format", None)
    (site / "bad_format.py").write_text(code)
    declared(site, {"vani.readers": {"bad": "bad_format:FORMAT"}})
    log = tmp_path / "run.trc"
    log.write_text("x")
    with pytest.raises(UnknownFormatError) as caught:
        vani.open_trace(log)
    line = str(caught.value)
    assert line.startswith(f"{log}: is a TAU trace") and "bad_format:FORMAT: " in line and said in line
    assert "; update or uninstall the package that brings it, or " in line


def test_a_broken_format_does_not_hinder_traces_of_others(site, tmp_path):
    sys.modules.pop("bad_format", None)
    (site / "bad_format.py").write_text(FAULTY)
    declared(site, {"vani.readers": {"bad": "bad_format:FORMAT", "gone": "vani_example.gone:FORMAT"}})
    shutil.copytree(SMALL, tmp_path / "runs" / "one")
    (tmp_path / "runs" / "results").mkdir()
    assert len(open_workload([tmp_path / "runs"]).readers) == 1
    with pytest.raises(UnknownFormatError, match=r"gone:FORMAT: the format of entry point 'gone'"):
        vani.open_trace(tmp_path / "runs" / "results")


def test_failing_probe_of_a_format_is_named_if_no_other_fits(site, tmp_path):
    sys.modules.pop("bad_format", None)
    (site / "bad_format.py").write_text(FAULTY)
    declared(site, {"vani.readers": {"bad": "bad_format:FORMAT"}})
    with pytest.raises(
        UnknownFormatError, match=r"the format 'bad' cannot detect .* \(KeyError: 'magic' at .*bad_format\.py:5\); update"
    ):
        vani.open_trace(tmp_path)


def test_a_measure_of_another_distribution_is_found_and_runs(plugin, trace):
    assert "longest_call" in {measure.name for measure in all_measures()}
    assert vani.profile(trace).extensions == {"longest_call": {"duration_ns": 40_000}}


def test_measure_needs_its_distribution(site):
    assert "longest_call" not in {measure.name for measure in all_measures()}


def test_a_rule_of_another_distribution_is_found_and_judges(plugin, trace):
    advice = vani.advise(vani.profile(trace), select=["EXA001"])
    assert [found.rule for found in advice.recommendations] == ["EXA001"]
    assert "at most 100 bytes" in advice.recommendations[0].reason
    assert advice.recommendations[0].recommended == {"buffer_bytes": 4096}


def test_plug_in_rule_explains_why_it_is_silent(plugin, trace):
    (trace / "calls.csv").write_text(CALLS.replace(",100,", ",4096,"))
    advice = vani.advise(vani.profile(trace), select=["tiny-writes"])
    assert [(found.rule, found.why) for found in advice.no_recommendation] == [
        ("EXA001", "half of the writes have at least 4096 bytes")
    ]


def test_a_rule_of_another_distribution_is_explained(plugin):
    assert "Most writes are smaller than a page" in catalogue.page_text(catalogue.find("exa001"))


def test_unloadable_rule_is_named(site):
    declared(site, {"vani.advisors": {"gone": "vani_example.gone:Gone"}})
    with pytest.raises(InputError, match=r"vani_example\.gone:Gone: the rules of entry point 'gone'"):
        catalogue.rules()


@pytest.mark.parametrize("language", ["python", "toml"])
def test_code_in_plug_in_guides_matches_the_examples(language):
    guides = [page for page in GUIDES if page.stem in ("reader", "analyzer", "rule")]
    written = {step.text for page in guides for step in steps(page)}
    text = "".join(page.read_text() for page in guides)
    files = [path.read_text() for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".toml")]
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 2
    for block in set(blocks) - written:
        assert any(block.strip("\n") in file for file in files), block


EXTENSION = """
class Measure:
    name = {name!r}
    columns = frozenset({{"duration_ns"}})

    def chunk(self, context, findings):
        return self

    def add(self, batch):
        pass

    def result(self):
        return 0

    def combine(self, parts):
        return 0

    def aggregate(self, combined, workload, findings):
        import numpy as np
        return {result}
"""


@pytest.fixture
def measure(site, monkeypatch):
    """Install a named measure whose `aggregate` returns a result."""

    def install_measure(name="mine", result="7"):
        (site / "their_measure.py").write_text(EXTENSION.format(name=name, result=result))
        declared(site, {"vani.analyzers": {"mine": "their_measure:Measure"}}, "vani-measure")
        monkeypatch.delitem(sys.modules, "their_measure", raising=False)
        importlib.invalidate_caches()

    return install_measure


def test_plug_in_measure_is_in_the_document_as_plain_values(measure, trace, tmp_path):
    measure(result="{'by_rank': np.arange(2).tolist() + [np.int64(5)], 'rate': np.float64(0.5), 'what': ('a', None)}")
    vani.profile(trace).save(tmp_path / "profile.yaml")
    plain = {"by_rank": [0, 1, 5], "rate": 0.5, "what": ["a", None]}
    assert vani.Profile.load(tmp_path / "profile.yaml").extensions == {"mine": plain}


def test_plug_in_measure_becomes_a_frame(plugin, trace):
    frame = vani.profile(trace).frame("extensions")
    assert frame.to_dict("records") == [{"measure": "longest_call", "attribute": "duration_ns", "value": 40_000}]


@pytest.mark.parametrize("form", ["html", "markdown", "txt"])
@pytest.mark.sampled(1)
def test_plug_in_measure_is_in_the_report(plugin, trace, form):
    text = vani.report(vani.profile(trace), format=form)
    assert "Other measures" in text
    assert "longest_call" in text.replace("\\", "")
    assert "40000" in text


def test_a_report_without_extensions_has_no_section_for_them(trace):
    assert "Other measures" not in vani.report(vani.profile(trace))


@pytest.mark.parametrize(
    ("result", "what"),
    [
        ("np.arange(3)", "a ndarray for extensions.mine,"),
        ("{'a': [1, object()]}", r"a object for extensions\.mine\.a\[1\],"),
        ("{1: 2}", "a dict for extensions.mine,"),
        ("float('nan')", "nan for extensions.mine,"),
    ],
)
def test_value_that_a_profile_cannot_contain_is_refused_naming_its_measure(measure, trace, result, what):
    measure(result=result)
    with pytest.raises(InputError, match=rf"measure 'mine': its `aggregate` gives {what} which a profile cannot contain"):
        vani.profile(trace)


@pytest.mark.parametrize("name", ["operations", "busy", "survey"])
def test_duplicate_measure_name_is_refused_on_loading(measure, name):
    measure(name=name)
    with pytest.raises(InputError, match=rf"plug-in mine: the measure .* is called '{name}', as another one is"):
        all_measures()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise KeyError('magic')", "the plug-in vani-measure failed: KeyError: 'magic' at {file}:20; update, fix or"),
        # The exception is raised in a library that the plug-in called.
        ("return np.zeros(-1)", "the plug-in vani-measure failed: ValueError: negative dimensions are not allowed at {file}:20;"),
        ("return (", "the measure 'their_measure:Measure' cannot be loaded (SyntaxError: '(' was never closed at {file}:20)"),
    ],
)  # fmt: skip
def test_fault_of_a_plug_in_is_attributed_to_it_with_file_and_line(measure, site, trace, capsys, code, said):
    measure()
    file = site / "their_measure.py"
    file.write_text(file.read_text().replace("return 7", code))
    with pytest.raises(SystemExit) as end:
        main(["profile", str(trace), "-o", str(site / "p.yaml"), "-q"])
    assert end.value.code == 2
    assert said.format(file=file) in capsys.readouterr().err


def test_fault_of_a_plug_in_reader_is_attributed_to_the_plug_in(trace, capsys):
    # The example reader trusts its input.
    (trace / "calls.csv").write_text("0,open,/s/out,,,0,long\n")
    with pytest.raises(SystemExit) as end:
        main(["profile", str(trace), "-q"])
    assert end.value.code == 2
    said = r"vani: the plug-in vani-declared failed: ValueError: .*'long' at .*examples/csv_reader\.py:\d+; update"
    assert re.match(said, capsys.readouterr().err)


def test_a_fault_of_a_rule_names_the_rule_and_its_file(plugin, trace, monkeypatch):
    monkeypatch.setattr("vani_example.tiny_writes.TinyWrites.check", lambda *_: 1 / 0)
    with pytest.raises(InputError, match=r"^vani_example\.tiny_writes: rule EXA001 \(tiny-writes\) failed \(ZeroDivisionError: "):
        vani.advise(vani.profile(trace), select=["EXA001"])


def test_a_measure_without_its_functions_is_named(site, monkeypatch):
    monkeypatch.delitem(sys.modules, "their_measure", raising=False)
    (site / "their_measure.py").write_text("class Measure:\n    name = 'mine'\n")
    declared(site, {"vani.analyzers": {"mine": "their_measure:Measure"}}, "vani-measure")
    with pytest.raises(InputError, match=r"plug-in mine: the measure 'their_measure:Measure' cannot be loaded"):
        all_measures()


def test_plug_in_measure_is_null_without_decoded_calls(measure):
    measure()
    quick = vani.profile(ROOT / "tests" / "data" / "traces" / "v3-posix-mix-4r", quick=True)
    assert quick.extensions == {"mine": None}
    assert quick.provenance["extensions.mine"] == "--quick decodes no calls"
