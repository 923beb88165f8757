"""The first screen on a terminal of 80 columns."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest
from repository import ROOT, TRACES
from rich.cells import cell_len
from rich.console import Console
from terminal import on_terminal

from tests.traces.recorder_writer import Call, write_trace
from vani import Profile, profile
from vani.render.answers import PROGRAM, shortened
from vani.render.screen import print_profile
from vani.schema.profile import Unseen

VANI = [sys.executable, "-m", "vani"]
# Recorder writes _ for a space.
HOSTILE = [
    "/s/[bold_red]fire[/bold_red]",
    "/s/[red][/nothing][link=x]",
    "/s/\x1b[2J\x1b]0;owned\x07bell",
    "/s/two\nlines",
    "/s/\u202egnp.exe",
]


def screen(found: Profile, *, width: int = 80, saved: str = "p.yaml") -> list[str]:
    text = io.StringIO()
    print_profile(found, Console(file=text, width=width, color_system=None), saved=None if saved == "" else saved)
    return text.getvalue().splitlines()


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("COLUMNS", raising=False)


def test_screen_states_run_amounts_dominant_cost_its_place_and_next_step(desk, plain):
    status, shown = on_terminal([*VANI, "profile", TRACES / "v3-cm1like-16r", "-o", "p.yaml"], desk)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert status == 0
    assert "\x1b" not in shown
    assert lines[0].startswith("v3-cm1like-16r: 16 processes, ")
    assert re.match(r"I/O takes \S+ % of the run in the slowest process \(rank 0\)[,:]", lines[1])
    labels = [line[:7].strip() for line in lines if re.match(r"(Why|When|Where|Data|Note|Next) ", line)]
    assert labels[0] == "Why" and labels[-1] == "Next" and "Where" in labels
    # 31,536,960 bytes written by 7,800 calls, 1,115,136 read by 272 (reference.json).
    data = " ".join(lines)
    assert "31.5 MB written by 7,800 calls at" in data
    assert "1.12 MB read by 272 calls at" in data
    assert lines[-1].startswith("Next   ") and "vani advise p.yaml" in lines[-1]
    assert Profile.load(desk / "p.yaml").workflow.processes == 16


@pytest.mark.parametrize("trace", sorted(p.name for p in TRACES.iterdir() if (p / "recorder.mt").is_file()))
@pytest.mark.sampled(7)
def test_no_line_is_wider_than_the_terminal(trace, desk):
    lines = screen(profile(TRACES / trace))
    assert [line for line in lines if cell_len(line.rstrip()) > 80] == []
    assert len(lines) <= 24
    # Figures are never truncated, only paths in the middle.
    assert not any(re.search(r"\d…( |$)", line) for line in lines)


def test_wide_terminal_shows_complete_paths(desk):
    lines = screen(profile(TRACES / "v3-ior-ssf-hdf5-4r"), width=140)
    assert any("/lustre/scratch/proj/ior/ior.h5" in line for line in lines)


@pytest.mark.slow
def test_summary_in_a_batch_job_is_plain_text_without_padding(desk, mix):
    done = subprocess.run([*VANI, "profile", mix, "-o", "p.yaml"], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    assert lines[0].startswith("v3-posix-mix-4r: 4 processes, ")
    assert any(line.startswith("Next   ") for line in lines[-4:])
    assert "\x1b" not in done.stderr
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) <= 100


def test_summary_is_omitted_in_a_pipe_and_when_quiet(desk, mix):
    piped = subprocess.run([*VANI, "profile", mix], capture_output=True, text=True, check=True)
    assert piped.stderr == "" and piped.stdout.startswith("schema: vani.profile/")
    quiet = subprocess.run(
        [*VANI, "profile", mix, "-q", "-o", "p.yaml"], capture_output=True, text=True, check=True
    )
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_a_checkpoint_that_flushes_names_fsync(desk):
    lines = screen(profile(TRACES / "v3-ckpt-then-restart-8r"))
    cause = next(line for line in lines if line.startswith("Why"))
    assert re.match(r"Why    fsync: 40 calls, 88 % of the I/O time\. Write rate including fsync: \d+", cause)
    assert "too short to judge" in " ".join(" ".join(lines).split())


def test_time_in_libraries_is_named_if_the_run_waits_for_it(desk):
    """IOR writes 67 MB through HDF5: its processes wait for each other in collective opens."""
    found = profile(TRACES / "v3-ior-ssf-hdf5-4r")
    text = " ".join(" ".join(screen(found)).split())
    assert "it matters, and the time goes to the I/O library" in text or "too short to judge" in text
    assert re.search(
        r"rank \d is inside MPI-IO calls for \d+ % of the run; (\d+ %|nearly all) of that time is waiting for each other", text
    )


def test_workflow_that_does_not_wait_for_storage_needs_no_action(desk, tmp_path):
    found = profile(ROOT / "examples" / "coupled")
    idle = found.workflow.model_copy(update={"io_time_share": 0.0038, "runtime_s": 80.0})
    lines = screen(found.model_copy(update={"workflow": idle, "verdict": None}))
    assert "storage is not what this workflow waits for" in " ".join(" ".join(lines).split())
    assert lines[-1].startswith("Next   nothing to do for storage")


def test_total_loss_is_not_reported_as_nothing_to_do(desk):
    write_trace(desk / "trace", [[Call("creat", ("/f", "1"))]], layout="3.0")
    (desk / "trace" / "recorder.ts").write_bytes(b"noise" * 40)
    lines = screen(profile(desk / "trace"))
    assert lines[0].startswith("Damaged trace: ")
    assert lines[-1] == "Next   trace it again"


@pytest.mark.slow
def test_colours_are_printed_only_if_supported(desk, monkeypatch, mix):
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, coloured = on_terminal([*VANI, "profile", mix, "-o", "p.yaml"], desk, environment={"TERM": "xterm"})
    assert "\x1b[1m" in coloured
    _, plain = on_terminal(
        [*VANI, "profile", mix, "-o", "p.yaml"], desk, environment={"TERM": "xterm", "NO_COLOR": "1"}
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)


@pytest.mark.slow
def test_quiet_prints_nothing_on_a_terminal_either(desk, mix):
    assert on_terminal([*VANI, "profile", mix, "-o", "p.yaml", "--quiet"], desk) == (0, "")


def test_without_a_file_the_next_step_is_to_save(desk):
    assert screen(profile(TRACES / "v3-cm1like-16r"), saved="")[-1].rstrip() == (
        "Next   save it with -o profile.yaml, then vani advise profile.yaml"
    )


def test_the_next_step_can_be_pasted(desk):
    last = screen(profile(TRACES / "v3-cm1like-16r"), saved="it's " + "long " * 20 + ".yaml")[-1]
    assert "vani advise 'it'\"'\"'s long long" in last
    assert ".yaml'" in last


def test_workflow_names_its_apps_and_the_most_costly_one(desk):
    lines = screen(profile(ROOT / "examples" / "coupled"))
    assert lines[0].startswith("sim, weather, analysis and 1 more app: 14 processes, ")
    assert any(line.startswith("Where  resim ") for line in lines)


def test_the_bytes_of_unseen_activity_are_stated_once(desk, cut):
    found = profile(cut)
    entry = Unseen(kind="written_without_writes", files=["/s/u"], count=1, bytes=1 << 24, cause="closed early", see_with="run x")
    asked = entry.model_copy(update={"cause": "asked to write 16.8 MB"})
    text = "\n".join(screen(found.model_copy(update={"unseen": [entry, asked], "verdict": None})))
    assert "Unseen 16.8 MB: closed early." in text and "Unseen asked to write 16.8 MB." in text


def test_losses_are_stated_first(desk, cut):
    lines = screen(profile(cut))
    assert "1 of 4 ranks" in lines[0]
    assert "storage is not what" not in " ".join(lines)


@pytest.mark.slow
def test_a_long_run_shows_its_progress_and_wipes_it(desk, mix):
    # Imitates slow loading, because Dask and Arrow are slow to load only the first time.
    code = (
        "import time, sys, vani.store.write as w; real = w.decode_part\n"
        "def slow(*task): time.sleep(1.6); return real(*task)\n"
        "w.decode_part = slow\n"
        "from vani.cli.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "profile", mix, "-o", "p.yaml", "--store", "stores"]
    status, shown = on_terminal(command, desk, environment={"TERM": "xterm"})
    assert status == 0
    assert "reading the trace" in shown
    # The bar's line is erased before the summary is written.
    assert shown.index("\x1b[2K") < shown.index("v3-posix-mix-4r")


def test_names_from_a_trace_do_not_reach_the_terminal_raw(desk, plain):
    calls = [
        Call(name, (path, *rest), 0, 0, 10 * i, 10 * i + 5)
        for i, (path, (name, *rest)) in enumerate(
            (path, call)
            for path in HOSTILE
            for call in (("open", "66", "420"), ("write", "%p", "8"), ("close",))
        )
    ]
    trace = desk / "[red]evil"
    write_trace(trace, [calls], layout="3.0", functions=["open", "write", "close"])
    for shown_files in (HOSTILE[:3], HOSTILE[3:]):
        found = profile(trace)
        kept = [file for file in found.files if file.path in shown_files]
        lines = screen(found.model_copy(update={"files": kept}), width=200)
        assert len(kept) == len(shown_files)
        assert all(line.isprintable() for line in lines)
        assert lines[0].startswith("[red]evil: ")
    status, shown = on_terminal([*VANI, "profile", trace, "-o", "p.yaml", "--files", "all"], desk)
    assert status == 0
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert {file.path for file in Profile.load(desk / "p.yaml").files} == set(HOSTILE)


@pytest.mark.parametrize(
    ("path", "width", "short"),
    [
        ("/scratch/out.h5", 20, "/scratch/out.h5"),
        ("/lustre/scratch/proj/ior/out.h5", 24, "/lustre/…/ior/out.h5"),
        ("/lustre/scratch/proj/ior/out.h5", 16, "/lustre/…/out.h5"),
        ("/lustre/scratch/proj/ior/out.h5", 10, "…/out.h5"),
        ("checkpoint_000001.dat", 12, "che…0001.dat"),
        ("a/b", 1, "…"),
    ],
)
def test_a_path_is_cut_in_its_middle(path, width, short):
    assert shortened(path, width) == short
    assert len(short) <= width


@pytest.mark.slow
def test_summary_describes_the_program_on_request(mix, tmp_path):
    saved = tmp_path / "p.yaml"
    plain = subprocess.run([*VANI, "profile", mix, "-o", saved], capture_output=True, text=True, check=True).stderr
    described = subprocess.run(
        [*VANI, "profile", mix, "-o", saved, "--diagnosis"], capture_output=True, text=True, check=True
    ).stderr
    first = described.split(f"{PROGRAM}\n")[1].splitlines()[0]
    assert first.startswith("  ")
    assert PROGRAM not in plain
    assert [line for line in plain.splitlines() if line not in described.splitlines()] == []
