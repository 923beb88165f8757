"""The number of listed files changes only the list: unlisted files are still counted, together."""

from pathlib import Path

import numpy as np
import pytest

import vani
from vani.analyzers.characterise import _numbered
from vani.calls import FILES
from vani.columns import Texts, small_table

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.mark.parametrize(
    "name", ["v3-ckpt-then-restart-8r", "v2-cm1like-8r", "v3-mpitracing-cm1like-4r", "v3-posix-mix-4r"]
)
@pytest.mark.parametrize("listed", [0, 1, 3])
@pytest.mark.sampled(4)
def test_profile_of_few_listed_files_differs_only_in_its_list(name, listed, stores):
    whole = vani.profile(TRACES / name, store=stores, files=None).model_dump()
    short = vani.profile(TRACES / name, store=stores, files=listed).model_dump()
    assert len(whole["files"]) > 3
    short_files = short.pop("files")
    assert short_files == whole.pop("files")[:listed]
    assert f"the {listed} files" in short["provenance"].pop("files")
    paths = {None, *(file["path"] for file in short_files)}
    assert short.pop("accesses") == [row for row in whole.pop("accesses") if row["file"] in paths]
    assert short == whole


def test_files_of_several_traces_are_numbered_by_first_occurrence():
    def table(*paths: str, first_class: int = 0):
        return small_table([range(len(paths)), paths, [first_class + i for i in range(len(paths))]], FILES)

    paths, classes, local = _numbered([table("/b", "/a"), table("/c", "/a", "/b", first_class=2), table()])
    assert list(paths) == ["/b", "/a", "/c"] and classes.tolist() == [0, 1, 2]
    assert [codes.tolist() for codes in local] == [[0, 1], [2, 1, 0], []]
    alone, _, codes = _numbered([table("/b", "/a")])
    assert list(alone) == ["/b", "/a"] and codes[0].tolist() == [0, 1]


def test_texts_are_a_sequence_of_strings():
    column = small_table([range(3), ["/a", "é", ""], [0, 0, 0]], FILES)["path"]
    texts = Texts(column)
    assert len(texts) == 3 and texts[1] == "é" and texts[-1] == "" and texts[np.int64(0)] == "/a"
    assert texts[1:] == ["é", ""] and list(texts) == ["/a", "é", ""] and "é" in texts
