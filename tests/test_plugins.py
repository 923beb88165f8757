"""What CONTRIBUTING tells about readers, measures and rules of one's own is true: the examples there work."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from distribution import install

import vani
from vani.advisors import catalogue
from vani.analyzers import passes
from vani.errors import InputError, TraceError
from vani.readers import open as door

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


def declared(site: Path, entry_points: dict[str, dict[str, str]]) -> None:
    """Put into `site` what pip leaves there of a distribution's entry points, without any code."""
    info = site / "vani_example-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vani-example\nVersion: 0.1\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed distributions, and the example of a reader beside it."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.setattr(sys, "path", [str(place), str(ROOT / "examples"), *sys.path])
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    importlib.invalidate_caches()
    catalogue.rules.cache_clear()
    yield place
    catalogue.rules.cache_clear()


@pytest.fixture
def plugin(site, monkeypatch):
    install(PLUGIN, site, monkeypatch)
    importlib.invalidate_caches()


@pytest.fixture
def trace(tmp_path, site, monkeypatch):
    """A trace of calls.csv, which `open_trace` knows as if it were in the list of readers."""
    from csv_reader import CsvReader, is_csv  # noqa: PLC0415 - on the path by now

    monkeypatch.setattr(door, "is_parquet", is_csv)
    monkeypatch.setattr(door, "open_parquet", CsvReader)
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
    assert profile.provenance["io.bytes"] == "calls.csv holds what calls asked for"


def test_the_example_reader_says_what_is_no_call(trace):
    (trace / "calls.csv").write_text("0,fly,/s/out,,,0,1\n")
    with pytest.raises(TraceError, match=r"calls\.csv: line 1 is no call; see"):
        vani.open_trace(trace)


def test_a_measure_of_another_distribution_is_found_and_runs(plugin, trace):
    assert "longest_call" in {measure.name for measure in passes.measures()}
    assert vani.profile(trace).extensions == {"longest_call": {"duration_ns": 40_000}}


def test_without_the_distribution_there_is_no_such_measure(site):
    assert "longest_call" not in {measure.name for measure in passes.measures()}


def test_a_rule_of_another_distribution_is_found_and_judges(plugin, trace):
    advice = vani.advise(vani.profile(trace), select=["EXA001"])
    assert [found.rule for found in advice.recommendations] == ["EXA001"]
    assert "at most 100 bytes" in advice.recommendations[0].reason
    assert advice.recommendations[0].recommended == {"buffer_bytes": 4096}


def test_a_rule_of_another_distribution_says_why_it_is_silent(plugin, trace):
    (trace / "calls.csv").write_text(CALLS.replace(",100,", ",4096,"))
    advice = vani.advise(vani.profile(trace), select=["tiny-writes"])
    assert [(found.rule, found.why) for found in advice.no_recommendation] == [
        ("EXA001", "half of the writes have at least 4096 bytes")
    ]


def test_a_rule_of_another_distribution_is_explained(plugin):
    assert "Most writes are smaller than a page" in catalogue.page_text(catalogue.find("exa001"))


def test_a_rule_that_cannot_be_loaded_is_named(site):
    declared(site, {"vani.advisors": {"gone": "vani_example.gone:Gone"}})
    with pytest.raises(InputError, match=r"vani_example\.gone:Gone: the rules of entry point 'gone'"):
        catalogue.rules()


@pytest.mark.parametrize("language", ["python", "toml"])
def test_the_code_in_contributing_is_that_of_the_examples(language):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    files = [path.read_text() for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".toml")]
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        assert any(block.strip("\n") in file for file in files), block


EXTENSION = """
class Measure:
    name = {name!r}
    columns = frozenset({{"duration_ns"}})

    def begin(self, context, facts):
        return self

    def add(self, batch):
        pass

    def result(self):
        return 0

    def combine(self, parts):
        return 0

    def finish(self, combined, world, facts):
        import numpy as np
        return {result}
"""


@pytest.fixture
def measure(site, monkeypatch):
    """Install a measure of a name whose `finish` gives a result."""

    def install_measure(name="mine", result="7"):
        (site / "their_measure.py").write_text(EXTENSION.format(name=name, result=result))
        declared(site, {"vani.analyzers": {"mine": "their_measure:Measure"}})
        monkeypatch.delitem(sys.modules, "their_measure", raising=False)
        importlib.invalidate_caches()

    return install_measure


def test_what_a_measure_gives_is_in_the_document_as_plain_values(measure, trace, tmp_path):
    measure(result="{'by_rank': np.arange(2).tolist() + [np.int64(5)], 'rate': np.float64(0.5), 'what': ('a', None)}")
    vani.profile(trace).save(tmp_path / "profile.yaml")
    plain = {"by_rank": [0, 1, 5], "rate": 0.5, "what": ["a", None]}
    assert vani.Profile.load(tmp_path / "profile.yaml").extensions == {"mine": plain}


def test_what_a_measure_gives_is_a_frame(plugin, trace):
    frame = vani.profile(trace).frame("extensions")
    assert frame.to_dict("records") == [{"measure": "longest_call", "attribute": "duration_ns", "value": 40_000}]


@pytest.mark.parametrize("form", ["html", "markdown", "txt"])
def test_what_a_measure_gives_is_in_the_report(plugin, trace, form):
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
def test_what_a_profile_cannot_hold_is_refused_with_the_name_of_the_measure(measure, trace, result, what):
    measure(result=result)
    with pytest.raises(InputError, match=rf"measure 'mine': its `finish` gives {what} which a profile cannot hold"):
        vani.profile(trace)


@pytest.mark.parametrize("name", ["operations", "busy", "world"])
def test_a_name_that_is_taken_is_refused_when_the_measure_is_loaded(measure, name):
    measure(name=name)
    with pytest.raises(InputError, match=rf"plug-in mine: the measure .* is called '{name}', as another one is"):
        passes.measures()


def test_a_measure_without_finish_is_named(site, monkeypatch):
    monkeypatch.delitem(sys.modules, "their_measure", raising=False)
    (site / "their_measure.py").write_text("class Measure:\n    name = 'mine'\n")
    declared(site, {"vani.analyzers": {"mine": "their_measure:Measure"}})
    with pytest.raises(InputError, match=r"plug-in mine: the measure 'their_measure:Measure' cannot be loaded"):
        passes.measures()


def test_what_a_measure_would_give_is_null_where_no_call_is_decoded(measure):
    measure()
    quick = vani.profile(ROOT / "tests" / "data" / "traces" / "v3-posix-mix-4r", quick=True)
    assert quick.extensions == {"mine": None}
    assert quick.provenance["extensions.mine"] == "--quick decodes no calls"
