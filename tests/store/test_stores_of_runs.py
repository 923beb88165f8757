"""The stores of a run: never inside a trace, and made once for the whole run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import vani
from vani.cli.main import main
from vani.readers.recorder.reader import RecorderReader
from vani.schema import document
from vani.store import stores, write
from vani.store.stores import MemoryBudget

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-noipc-rawts-ior-4r"


@pytest.fixture
def trace(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(TRACE, tmp_path / "runs" / "T")


@pytest.fixture
def decodes(monkeypatch) -> list[int]:
    """Number of parts of each decoded trace, in memory or in a folder."""
    found: list[int] = []
    real = write._manifest

    def counted(reader, pieces, *args, **rest):
        found.append(len(pieces))
        return real(reader, pieces, *args, **rest)

    monkeypatch.setattr(write, "_manifest", counted)
    return found


@pytest.fixture(params=["in memory", "in the trace", "in the cache", "without a cache"])
def anywhere(request, tmp_path, monkeypatch) -> None:
    """Wherever calls are stored."""
    if request.param != "in memory":
        monkeypatch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(0))
        if request.param != "in the trace":
            monkeypatch.setattr(RecorderReader, "decodes_quickly", False)
    if request.param == "without a cache":
        (tmp_path / "file").touch()
        monkeypatch.setenv("VANI_CACHE", str(tmp_path / "file" / "cache"))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*"))


@pytest.mark.parametrize("command", ["profile", "report"])
@pytest.mark.parametrize("where", ["T/x", "T/x/y", "T", "T/../T/x", "link/x"])
def test_store_inside_a_trace_is_refused_before_anything_is_written(trace, tmp_path, capfd, command, where):
    (trace.parent / "link").symlink_to(trace)
    output = tmp_path / {"profile": "out.yaml", "report": "out.html"}[command]
    before = names(trace)
    with pytest.raises(SystemExit) as leaving:
        main([command, str(trace), "--store", str(trace.parent / where), "-o", str(output)])
    out, err = capfd.readouterr()
    place = trace.parent / where
    assert (leaving.value.code, out) == (2, "")
    assert err == f"vani: {place}: is inside the trace; name a folder next to it\n"
    assert names(trace) == before and not output.exists()


def test_stores_may_be_next_to_traces_but_not_inside_them(trace):
    runs = trace.parent
    with pytest.raises(vani.errors.InputError, match="is inside the trace"):
        vani.profile(runs, store=trace / "x")
    assert vani.profile(runs, store=runs / "stores") == vani.profile(runs)
    assert len(list((runs / "stores").iterdir())) == 1


def test_a_trace_is_not_decoded_into_itself_for_its_plots(trace, tmp_path):
    profile = vani.profile(trace, store=tmp_path / "S")
    (trace / "x").mkdir()
    with pytest.raises(vani.errors.InputError, match="is inside the trace"):
        vani.heat_map(profile, store=trace / "x")
    assert not any((trace / "x").iterdir())


def test_a_cache_inside_the_trace_is_not_used(trace, monkeypatch):
    expected, before = vani.profile(trace), names(trace)
    monkeypatch.setenv("VANI_CACHE", str(trace / "cache"))
    assert vani.profile(trace) == expected
    assert names(trace) == before


@pytest.mark.usefixtures("anywhere")
@pytest.mark.sampled(2)
def test_a_report_of_a_trace_decodes_it_once(trace, decodes):
    page = vani.report(trace)
    assert len(decodes) == 1
    assert "it needs the decoded calls" not in page


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("command", ["plot", "diff", "advise", "check"])
@pytest.mark.sampled(5)
def test_every_command_that_accepts_a_trace_decodes_it_once(trace, decodes, command):
    work = {
        "plot": lambda: vani.plot("heat-map", trace, format="json"),
        "diff": lambda: vani.diff(trace, trace, strip=[]),
        "advise": lambda: vani.advise(trace),
        "check": lambda: vani.check(trace, allow_empty=True, search=False),
    }
    assert work[command]()
    assert len(decodes) == 1


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (lambda trace: vani.advise(trace, select=["LUS"], ignore=["LUX"]), "LUX"),
        (lambda trace: vani.check(trace, baselines=["none.yaml"], search=False), "'none.yaml' does not exist"),
        (lambda trace: vani.report(trace, advice="none.yaml"), "none.yaml: no such file"),
    ],
    ids=["advise", "check", "report"],
)
def test_other_bad_arguments_are_reported_before_a_trace_is_decoded(trace, decodes, work, line):
    with pytest.raises(vani.errors.InputError, match=line):
        work(trace)
    assert decodes == []


@pytest.mark.slow
def test_a_report_writes_the_profile_once_for_its_digest(trace, monkeypatch):
    profile, written = vani.profile(trace), []
    real = document.yaml_text

    def counted(tree):
        written.append(tree["schema"])
        return real(tree)

    monkeypatch.setattr(document, "yaml_text", counted)
    vani.report(profile)
    assert [schema for schema in written if schema.startswith("vani.profile/")] == ["vani.profile/4"]
