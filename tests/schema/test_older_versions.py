"""A document of an older version is refused in one line, which names the command that makes it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.errors import DocumentError
from vani.gate.baselines import read_runs
from vani.schema.document import document_model, document_modules, load, loads, schema_name

AGAIN = {
    "profile": "make it again with `vani profile TRACE`",
    "advice": "make it again with `vani advise PROFILE`",
    "system": "make it again with `vani systems detect`, or by hand as in docs/machines.md",
}


def versions():
    for name in document_modules():
        newest = int(schema_name(document_model(name)).rpartition("/")[2])
        yield from ((name, version) for version in range(1, newest))


@pytest.mark.parametrize(("name", "version"), list(versions()))
def test_each_older_version_is_refused_with_what_makes_it_again(tmp_path, name, version):
    path = tmp_path / "old.yaml"
    path.write_text(f"# by hand\nschema: vani.{name}/{version}\n")
    with pytest.raises(DocumentError) as raised:
        load(path, document_model(name))
    assert str(raised.value) == f"{path}:2: schema vani.{name}/{version} is an older version; {AGAIN[name]}"


def test_newer_version_is_refused():
    with pytest.raises(DocumentError, match=r"x:1: schema vani\.profile/9 is newer than this Vani; known: vani\.profile/4; "):
        loads("schema: vani.profile/9\n", document_model("profile"), where="x")


BASELINE = """schema: vani.baseline/1
runs:
- {version: "0", sha256: "0"}
- {version: "0", sha256: "1"}
figures:
  workflow:
    io:
      ops: {read: 4, write: 2, metadata: 9%s}
"""


@pytest.mark.parametrize("sync", ["", ", sync: [null, 3]"])
def test_baseline_of_older_profiles_is_refused(tmp_path, sync):
    path = tmp_path / "baseline.yaml"
    path.write_text(BASELINE % sync)
    with pytest.raises(DocumentError) as raised:
        read_runs(path, ())
    assert str(raised.value) == (
        f"{path}:8: is a baseline of profiles of an older version; make it again with `vani check PROFILE --save FILE`"
    )
    path.write_text(BASELINE % ", sync: 3")
    assert len(read_runs(path, ()).runs) == 2


def test_profile_without_the_number_of_flushes_is_refused():
    text = (Path(__file__).parents[1] / "data" / "profiles" / "cm1.yaml").read_text()
    with pytest.raises(DocumentError, match=r"key 'sync' is missing in workflow\.io\.ops; add it"):
        loads(text.replace(", sync: 0}", "}"), document_model("profile"))
