"""`vani profile -o profile.json`, and the commands that read a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vani.cli.main import main
from vani.cli.report import report
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests/data/traces/v3-posix-mix-4r"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("profiles")
    for name in ("profile.json", "profile.yaml"):
        with pytest.raises(SystemExit) as end:
            main(["profile", str(TRACE), "-o", str(place / name), "--store", str(place / "store"), "-q"])
        assert end.value.code == 0
    return place


def command(capfd, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(one) for one in arguments])
    out, err = capfd.readouterr()
    return end.value.code, out, err


def test_file_name_selects_json(folder):
    assert json.loads((folder / "profile.json").read_text())["schema"] == "vani.profile/4"
    assert Profile.load(folder / "profile.json") == Profile.load(folder / "profile.yaml")


def test_format_can_be_requested(folder, capfd):
    status, out, _ = command(capfd, "profile", TRACE, "--format", "json", "--store", folder / "store", "-q")
    assert status == 0 and out == (folder / "profile.json").read_text()
    other = folder / "named.json"
    command(capfd, "profile", TRACE, "--format", "yaml", "-o", other, "--store", folder / "store", "-q")
    assert other.read_text() == (folder / "profile.yaml").read_text()
    other.unlink()


@pytest.mark.parametrize(
    "words",
    [
        ["advise", "given"],
        ["check", "given", "--allow-empty"],
        ["diff", "given", "profile.yaml"],
        ["diff", "given", "profile.yaml", "profile.yaml"],
        ["report", "given", "--format", "markdown", "-o", "-"],
        ["plot", "ops", "given", "-o", "plot.vl.json"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.sampled(3)
def test_commands_print_the_same_for_profiles_in_json_and_yaml(folder, capfd, monkeypatch, words):
    monkeypatch.chdir(folder)
    found = {}
    for kind in ("yaml", "json"):
        (folder / "given").write_bytes((folder / f"profile.{kind}").read_bytes())
        status, out, err = command(capfd, *words)
        assert status == 0, err
        # The digest is the file's.
        found[kind] = [line for line in out.splitlines() if "sha256" not in line]
        if words[0] == "plot":
            found[kind] = (folder / "plot.vl.json").read_text()
    assert found["json"] == found["yaml"]


def test_baselines_of_json_and_yaml_profiles_are_equal(folder, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    for kind in ("yaml", "json"):
        assert command(capfd, "check", f"profile.{kind}", "--save", tmp_path / f"{kind}.yaml")[0] == 0
    saved = {kind: (tmp_path / f"{kind}.yaml").read_text().splitlines() for kind in ("yaml", "json")}
    one, other = ([line for line in text if "sha256" not in line] for text in saved.values())
    assert one == other
    assert command(capfd, "check", "profile.yaml", "--baseline", "profile.json")[0] == 0


def test_a_history_takes_profiles_in_json(folder, capfd, tmp_path):
    status, _, err = command(
        capfd, "history", "add", folder / "profile.json", "--database", tmp_path / "h.db"
    )
    assert status == 0 and "1" in err


def test_a_profile_in_json_is_written_again_but_no_other_file_is(folder, capfd, tmp_path):
    place = tmp_path / "again.json"
    for _ in range(2):
        status, _, err = command(capfd, "profile", TRACE, "-o", place, "--store", folder / "store", "-q")
        assert status == 0, err


def test_a_cut_profile_in_json_is_refused_in_one_line(folder, capfd, tmp_path):
    place = tmp_path / "cut.json"
    place.write_text((folder / "profile.json").read_text()[:5000])
    for words in (["advise", place], ["diff", place, place], ["report", place, "-o", tmp_path / "r.html"]):
        status, out, err = command(capfd, *words)
        assert (status, out) == (2, "")
        assert err.startswith(f"vani: {place}:1:") and "not JSON" in err and err.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


@pytest.mark.slow
def test_a_report_reads_its_profile_once(folder, monkeypatch):
    paths, read = [], SavedProfile.read.__func__

    def counted(cls, path, *rest, **named):
        paths.append(path)
        return read(cls, path, *rest, **named)

    monkeypatch.setattr(SavedProfile, "read", classmethod(counted))
    for kind in ("yaml", "json"):
        assert report(folder / f"profile.{kind}", store=folder / "store")
    assert paths == [folder / "profile.yaml", folder / "profile.json"]
