"""Profiling again: a trace that was decoded once is neither decoded nor read a second time."""

from pathlib import Path

import pytest

import vani
from vani.readers.recorder.reader import RecorderReader
from vani.readers.recorder.tables import TableReader

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
FIRST, SECOND = TRACES / "v3-noipc-rawts-ior-4r", TRACES / "v3-cm1like-16r"


@pytest.fixture
def decoded(monkeypatch):
    """Names of the traces whose tables or calls were read."""
    names = set()

    def noted(kind, method, path_of):
        original = getattr(kind, method)

        def note(self, *args):
            names.add(path_of(self).name)
            return original(self, *args)

        monkeypatch.setattr(kind, method, note)

    noted(TableReader, "read", lambda tables: tables._source.path)
    noted(RecorderReader, "batches", lambda reader: reader.path)
    return names


@pytest.mark.parametrize(
    "options",
    [{"phase_gap": 0.5}, {"files": 2}, {"files": None}, {"system": "lassen"}],
    ids=["phase gap", "fewer files", "all files", "system"],
)
def test_other_options_decode_nothing_and_equal_a_fresh_run(tmp_path, decoded, options):
    vani.profile(SECOND, store=tmp_path / "kept")
    assert decoded == {SECOND.name}
    decoded.clear()
    again = vani.profile(SECOND, store=tmp_path / "kept", **options)
    assert decoded == set()
    assert again.to_yaml() == vani.profile(SECOND, store=tmp_path / "fresh", **options).to_yaml()


def test_additional_trace_of_a_workflow_is_the_only_one_decoded(tmp_path, decoded):
    vani.profile(FIRST, store=tmp_path)
    decoded.clear()
    both = vani.profile(FIRST, SECOND, store=tmp_path)
    assert decoded == {SECOND.name}
    assert [trace.ranks for trace in both.traces] == [4, 16]


def test_a_graph_of_a_stored_trace_decodes_nothing(tmp_path, decoded):
    vani.characterise(SECOND, store=tmp_path)
    decoded.clear()
    vani.characterise(SECOND, store=tmp_path).graph("processes")
    assert decoded == set()
