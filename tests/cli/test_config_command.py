"""Settings of the user and the centre: precedence, scope, and errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "v3-ior-ssf-hdf5-4r.yaml"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the centre's file and the user's."""
    monkeypatch.setenv("VANI_SITE", str(tmp_path / "site.toml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    (tmp_path / "own" / "vani").mkdir(parents=True)
    for name in ("VANI_SYSTEM", "VANI_HISTORY"):
        monkeypatch.delenv(name, raising=False)

    def write(site: str = "", own: str = "") -> None:
        (tmp_path / "site.toml").write_text(site)
        (tmp_path / "own" / "vani" / "config.toml").write_text(own)

    return write


def shown(run) -> dict[str, tuple[str | None, str]]:
    rows = json.loads(run("config", "--format", "json").out)
    return {row["setting"]: (row["value"], Path(row["set_by"]).name) for row in rows}


def test_user_overrides_the_centre_and_the_environment_overrides_both(run, files, monkeypatch):
    files('system = "lassen"\ncontact = "help@centre"\n', 'system = "summit"\n')
    assert shown(run)["system"] == ("summit", "config.toml")
    assert shown(run)["contact"] == ("help@centre", "site.toml")
    assert shown(run)["documentation"] == (None, "default")
    monkeypatch.setenv("VANI_SYSTEM", "generic-lustre")
    assert shown(run)["system"] == ("generic-lustre", "VANI_SYSTEM")


def test_advice_uses_the_centres_machine_unless_an_option_names_another(run, files, tmp_path):
    files('system = "lassen"\ncontact = "help@centre.org"\ndocumentation = "https://centre.org/io"\n')
    done = run("advise", GOLDEN, "-o", tmp_path / "a.yaml")
    assert "name: lassen" in (tmp_path / "a.yaml").read_text()
    assert done.err.endswith("Questions: help@centre.org\nMore about storage here: https://centre.org/io\n")
    run("advise", GOLDEN, "--system", "generic-lustre", "-o", tmp_path / "b.yaml")
    assert "name: generic-lustre" in (tmp_path / "b.yaml").read_text()


@pytest.mark.slow
def test_report_has_contact_lines_and_the_default_machine_unless_its_advice_names_one(run, files, tmp_path):
    files('system = "lassen"\ncontact = "help@centre.org <b>"\n')
    assert run("report", GOLDEN, "-o", tmp_path / "r.html", "-q").status == 0
    page = (tmp_path / "r.html").read_text()
    assert "<p>Questions: help@centre.org &lt;b&gt;</p>" in page
    assert "lassen" in page
    run("advise", GOLDEN, "--system", "generic-lustre", "-o", tmp_path / "a.yaml", "-q")
    assert run("report", GOLDEN, "--advice", tmp_path / "a.yaml", "-o", tmp_path / "s.html", "-q").status == 0


def test_thresholds_add_up_and_a_projects_take_precedence(run, files, tmp_path):
    files(
        "[thresholds.MAT001]\nhardly = 0.5\n[thresholds.POS007]\nmin_phases = 9\n",
        "[thresholds.POS007]\nmin_phases = 3\n",
    )
    found = shown(run)
    assert found["thresholds.MAT001.hardly"] == ("0.5", "site.toml")
    assert found["thresholds.POS007.min_phases"] == ("3", "config.toml")
    text = run("advise", GOLDEN, "--format", "json").out
    (tmp_path / "vani.toml").write_text("[advise.thresholds.MAT001]\nhardly = 0.0001\n")
    other = run("advise", GOLDEN, "--format", "json", "--config", tmp_path / "vani.toml").out
    assert text != other
    files()
    assert run("advise", GOLDEN, "--format", "json", "--config", tmp_path / "vani.toml").out != text


def test_policy_overrides_the_centre_and_an_option_overrides_both(run, files, tmp_path, desk):
    files('system = "no-such-machine"\n')
    (desk / "vani.toml").write_text(
        'schema = "vani.policy/1"\n[check]\nsystem = "lassen"\n[check.rules]\nfail_on_severity = "high"\n'
    )
    assert run("check", GOLDEN).status == 0
    (desk / "vani.toml").write_text('schema = "vani.policy/1"\n[check.rules]\nfail_on_severity = "high"\n')
    assert "no-such-machine" in run("check", GOLDEN).line
    assert run("check", GOLDEN, "--system", "lassen").status == 0


def test_paths_in_a_file_are_seen_from_its_folder(run, files, tmp_path, monkeypatch):
    monkeypatch.delenv("VANI_CACHE")
    files('cache = "shared/cache"\nhistory = "postgresql://db/vani"\nsystem = "ours.yaml"\n')
    (tmp_path / "ours.yaml").write_text("schema: vani.system/2\nname: ours\nbase: lassen\n")
    found = shown(run)
    assert found["cache"][0] == str(tmp_path / "shared" / "cache")
    assert found["history"][0] == "postgresql://db/vani"
    assert found["system"][0] == str(tmp_path / "ours.yaml")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"systm = 'lassen'", "unknown key 'systm'; did you mean 'system'?"),
        (b"system = 3", "system is not text"),
        (b"contact = 'a\\tb'\n[thresholds]\nMAT001 = 3", "[thresholds] contains no tables of rules"),
        (b'contact = "a\\u001b[2Jb"', "contact contains characters that do not print"),
        (b"system = ", "not TOML: "),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"#" * (1 << 20) + b"#", "is longer than 1 MiB"),
    ],
)
def test_fault_of_a_file_gives_one_line(run, files, tmp_path, content, told):
    (tmp_path / "site.toml").write_bytes(content)
    for arguments in (("config",), ("advise", GOLDEN)):
        done = run(*arguments)
        assert done.status == 2
        assert f"site.toml: {told}" in done.line
        assert done.out == ""


def test_file_named_by_the_environment_must_exist(run, monkeypatch):
    monkeypatch.setenv("VANI_SITE", "/nowhere/site.toml")
    assert run("config").line == "/nowhere/site.toml: no such file; VANI_SITE names it"


def test_a_named_pipe_is_refused_as_settings(run, files, tmp_path):
    # Formerly waited for ever.
    files()
    (tmp_path / "site.toml").unlink()
    os.mkfifo(tmp_path / "site.toml")
    done = run("config")
    assert done.status == 2
    assert done.line.endswith("site.toml: is a named pipe; name a file")
