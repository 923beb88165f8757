"""`vani report`: its inputs, its outputs, and messages about bad input."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import vani
from vani.cli.main import main
from vani.errors import InputError
from vani.schema.profile import Profile
from vani.units import format_bytes, format_share

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "data" / "traces" / "v3-posix-mix-nonmpi"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a profile, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    shutil.copy(ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml", "profile.yaml")
    return tmp_path


def run(*arguments):
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    return leaving.value.code


@pytest.mark.parametrize(
    ("name", "begin"),
    [("r.html", "<!doctype html>"), ("r.md", "## I/O of "), ("r.txt", "v3-cm1like-16r\n==="), ("r", "<!doctype html>")],
)
@pytest.mark.sampled(2)
def test_file_name_selects_the_format(desk, name, begin):
    assert run("report", "profile.yaml", "-o", name) == 0
    assert (desk / name).read_text().startswith(begin)


def test_named_format_takes_precedence_and_stdout_has_only_the_report(desk, capfdbinary):
    assert run("report", "profile.yaml", "--format", "markdown") == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"## I/O of ")
    assert err == b""


def test_written_file_is_reported_with_the_verdict_in_plain_lines(desk, capfdbinary):
    assert run("report", "profile.yaml", "-o", "r.md") == 0
    out, err = capfdbinary.readouterr()
    share = Profile.load("profile.yaml").workflow.io_time_share
    *verdict, wrote = err.decode().splitlines()
    assert f"I/O takes {format_share(share)} of the run in the slowest process" in " ".join(verdict)
    assert wrote == f"wrote r.md (Markdown, {format_bytes((desk / 'r.md').stat().st_size)})"
    assert out == b"" and b"\x1b" not in err and not any(line.endswith(b" ") for line in err.splitlines())


def test_quiet_is_silent(desk, capfdbinary):
    assert run("report", "profile.yaml", "-o", "r.md", "--quiet") == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_damage_is_reported_in_the_first_line(desk, capfd):
    trace = shutil.copytree(ROOT / "tests" / "data" / "traces" / "v3-ckpt-then-restart-8r", desk / "cut")
    whole = (trace / "ug.cfg").read_bytes()
    (trace / "ug.cfg").write_bytes(whole[: int(0.6 * len(whole))])
    assert run("report", trace, "-o", "r.txt") == 0
    first, _, wrote = capfd.readouterr().err.splitlines()
    assert first.startswith("Damaged trace: 4 of 8 ranks are lost (cut, ranks 4 to 7: ")
    assert wrote.startswith("wrote r.txt (text, ")
    assert " ".join((desk / "r.txt").read_text().split()).startswith(first)


def test_two_runs_give_the_same_bytes(desk):
    run("report", "profile.yaml", "-o", "a.html")
    run("report", "profile.yaml", "-o", "b.html")
    assert (desk / "a.html").read_bytes() == (desk / "b.html").read_bytes()


@pytest.mark.slow
def test_a_trace_is_profiled_first_and_has_a_heat_map(desk):
    assert run("report", TRACE, "--store", "store", "-o", "r.html") == 0
    made = (desk / "r.html").read_text()
    assert 'data-plot="heat-map"' in made
    assert (desk / "store").is_dir()


def test_profile_without_its_trace_reports_missing_values(desk):
    made = (desk / "profile.yaml").read_text()
    assert "\n- path: " in made
    assert run("report", "profile.yaml", "-o", "r.html") == 0
    page = (desk / "r.html").read_text()
    assert 'data-plot="heat-map"' not in page
    assert "No plots over time: " in page and "--store" in page


def test_given_advice_is_shown(desk):
    assert run("advise", "profile.yaml", "--system", "lassen", "-o", "advice.yaml", "--quiet") == 0
    assert run("report", "profile.yaml", "--advice", "advice.yaml", "-o", "r.txt") == 0
    assert "Machine: lassen." in (desk / "r.txt").read_text()


def test_advice_about_another_profile_is_refused(desk, capsys):
    run("advise", "profile.yaml", "-o", "advice.yaml", "--quiet")
    with (desk / "profile.yaml").open("a") as file:
        file.write("# another one\n")
    assert run("report", "profile.yaml", "--advice", "advice.yaml", "-o", "r.html") == 2
    assert capsys.readouterr().err == (
        "vani: advice.yaml: was made from another profile (its sha256 differs); "
        "run `vani advise` on this profile, or leave --advice out\n"
    )
    assert not (desk / "r.html").exists()


def test_advice_contains_its_machine(desk, capsys):
    run("advise", "profile.yaml", "-o", "advice.yaml", "--quiet")
    assert run("report", "profile.yaml", "--advice", "advice.yaml", "--system", "lassen") == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.yaml",), "none.yaml: no such file"),
        (("profile.yaml", "--advice", "none.yaml"), "none.yaml: no such file"),
        (("profile.yaml", "--store", "none"), "none: no such folder"),
        (("profile.yaml", "--system", "nowhere"), "no machine and no file is called 'nowhere'"),
        (("profile.yaml", "-o", "no/r.html"), "no/r.html: cannot be written: its folder does not exist"),
        (("empty",), "empty"),
        (("profile.yaml", "-o", "r.pdf"), "r.pdf: a report is not written as .pdf; use a name that ends in .html, .md or .txt, or print"),
    ],
)
def test_bad_input_gives_one_line_and_leaves_no_files(desk, capsys, arguments, words):
    (desk / "empty").mkdir()
    assert run("report", *arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert words in err
    assert not list(desk.glob("**/r.*"))


def test_a_model_may_be_given_instead_of_a_file(desk):
    profile = Profile.load("profile.yaml")
    advice = vani.advise(profile)
    assert vani.report(profile, advice=advice, format="txt").startswith("v3-cm1like-16r\n")
    with pytest.raises(InputError, match="made from another profile"):
        vani.report(profile.model_copy(update={"files": []}), advice=advice)


def test_quick_profile_explains_how_to_get_times(desk):
    run("profile", str(TRACE), "--quick", "-o", "quick.yaml", "--quiet")
    run("report", "quick.yaml", "--store", str(desk), "-o", "quick.html", "--quiet")
    assert "is at hand: profile the trace without --quick, or name its folder with --store." in (desk / "quick.html").read_text()


@pytest.mark.parametrize(
    ("command", "status"), [("report", 0), ("plot heat-map", 0), ("plot transfer-sizes", 0), ("plot bandwidth", 2)]
)
@pytest.mark.sampled(2)
def test_values_beyond_64_bits_are_drawn_or_left_out(desk, capsys, command, status):
    # Bytes that no memory delivers within the time of a call: a legend had a mark at 10^22, which JSON
    # readers refuse.
    case = ROOT / "tests" / "data" / "cases" / "report-resolution-huge"
    assert run("profile", case, "-o", "huge.yaml", "-q") == 0
    assert run(*command.split(), "huge.yaml", "-o", "r.html" if command == "report" else "r.svg") == status
    assert ("the profile has no rate" in capsys.readouterr().err) == bool(status)
