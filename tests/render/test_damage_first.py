"""The sentence about damage: losses are counted, named, and on one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from report_inputs import HOSTILE, Page, golden, inputs_of, judged

import vani
from vani.render.report.markdown import to_markdown as markdown
from vani.render.report.model import Inputs
from vani.render.report.page import to_html as page
from vani.render.report.text import to_text as text
from vani.schema.damage import damage
from vani.schema.profile import Profile

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


def copied(name: str, folder: Path, called: str = "run") -> Path:
    return Path(shutil.copytree(TRACES / name, folder / called))


def cut(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def profiled(trace: Path, folder: Path, **options) -> Profile:
    return vani.profile(trace, store=folder / "store", **options)


def with_problems(*problems: str, ranks: int = 100, records: int = 900, complete: bool | None = False) -> Profile:
    """A profile of one trace whose reader reported this."""
    trace = golden().traces[0].model_copy(
        update={"path": "/t/run", "ranks": ranks, "records": records, "complete": complete, "problems": list(problems)}
    )
    workflow = golden().workflow.model_copy(update={"processes": ranks})
    return golden().model_copy(update={"traces": [trace], "workflow": workflow})


# --- real traces, cut -----------------------------------------------------------------------------------------------


def test_complete_trace_has_no_damage_note(tmp_path):
    assert damage(profiled(TRACES / "v3-ckpt-then-restart-8r", tmp_path)) is None
    assert damage(profiled(TRACES / "v3-posix-mix-4r", tmp_path, quick=True)) is None


def test_cut_time_stamps_lose_a_known_share_of_calls(tmp_path):
    trace = copied("v3-ckpt-then-restart-8r", tmp_path)
    cut(trace / "recorder.ts", 0.6)
    profile = profiled(trace, tmp_path)
    # The complete trace has 377 calls.
    assert profile.traces[0].records == 213
    assert damage(profile) == (
        "Damaged trace: 3 of 8 ranks are lost and 1 in part, 44 % of the calls (run, ranks 4 to 7: the time stamps in "
        "recorder.ts end before them); all figures are of the rest."
    )


def test_rank_without_its_last_calls_is_partly_lost(tmp_path):
    trace = copied("v3-ckpt-then-restart-8r", tmp_path)
    cut(trace / "recorder.ts", 0.97)
    assert damage(profiled(trace, tmp_path)) == (
        "Damaged trace: 1 of 8 ranks is lost in part, 4.8 % of the calls (run, rank 7: the time stamps in recorder.ts "
        "end before them); all figures are of the rest."
    )


@pytest.mark.parametrize("quick", [False, True])
def test_lost_grammars_lose_ranks_and_an_unknown_number_of_calls(quick, tmp_path):
    trace = copied("v3-ckpt-then-restart-8r", tmp_path)
    cut(trace / "ug.cfg", 0.6)
    assert damage(profiled(trace, tmp_path, quick=quick)) == (
        "Damaged trace: 4 of 8 ranks are lost (run, ranks 4 to 7: ug.cfg: their grammars are lost); all figures are of "
        "the rest."
    )


def test_ranks_without_their_call_tables_are_lost(tmp_path):
    trace = copied("v3-noipc-rawts-ior-4r", tmp_path)
    for rank in (0, 2):
        (trace / f"{rank}.cst").unlink()
    assert damage(profiled(trace, tmp_path)) == (
        "Damaged trace: 2 of 4 ranks are lost (run, ranks 0, 2: 0.cst is missing); all figures are of the rest."
    )


def test_unreadable_trace_of_a_workload_is_named(tmp_path):
    copied("v3-posix-mix-4r", tmp_path / "all", "001-mix")
    copied("v3-killed-2r", tmp_path / "all", "002-killed")
    said = damage(profiled(tmp_path / "all", tmp_path))
    assert said.startswith("Damaged trace: 1 of 2 traces is not in the profile (002-killed: is what an aborted run leaves: ")
    assert said.endswith("; all figures are of the rest.") and str(tmp_path) not in said


def test_both_kinds_of_loss_are_in_one_sentence(tmp_path):
    copied("v3-killed-2r", tmp_path / "all", "001-killed")
    copied("v3-killed-2r", tmp_path / "all", "002-killed")
    copied("v3-posix-mix-4r", tmp_path / "all", "003-mix")
    cut(copied("v3-ckpt-then-restart-8r", tmp_path / "all", "004-chk") / "ug.cfg", 0.6)
    said = damage(profiled(tmp_path / "all", tmp_path))
    assert said.startswith("Damaged traces: 2 of 4 traces are not in the profile (001-killed: ")
    assert "; 1 more trace like it); 4 of 12 ranks are lost (004-chk, ranks 4 to 7: " in said
    assert said.count(".;") == 0 and said.endswith("; all figures are of the rest.")


# --- what readers say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        (
            [
                *(f"rank {i}: left out, /t/run/{i}.cst: is missing" for i in range(10)),
                "ranks 0, 1, 2, 3, 4, ... (80 in all): left out",
            ],
            "80 of 100 ranks are lost (run, ranks 0 to 9 and 70 more: 0.cst is missing)",
        ),
        (
            ["/t/run/ug.mt: ranks 1, 2, 3, 4, 7, ... (30 in all): left out, it names none of the 5 grammars for them"],
            "30 of 100 ranks are lost (run, ranks 1 to 4, 7 and 25 more: ug.mt: it names none of the 5 grammars for them)",
        ),
        (
            ["ranks 10 to 19: 100 calls left out, part.3.parquet: a page is no whole page"],
            "10 of 100 ranks are lost, 10 % of the calls (run, ranks 10 to 19: part.3.parquet: a page is no whole page)",
        ),
        (
            ["rank 3: left out, 3.cst: damaged", "rank 4: 10 of 20 calls left out, the time stamps end before them"],
            "1 of 100 ranks is lost and 1 in part (run, ranks 3, 4: 3.cst: damaged)",
        ),
        (
            [f"rank {i}: 10 calls left out, no time stamps" for i in range(0, 100, 10)],
            "10 of 100 ranks are lost, 10 % of the calls (run, ranks 0, 10, 20, 30 and 6 more: no time stamps)",
        ),
        (["calls of function number 200, which the trace does not name"],
         "run: calls of function number 200, which the trace does not name"),
        (["/t/run/a.parquet: left out, it is not a whole Parquet file (cut)", "b"],
         "run: a.parquet: left out, it is not a whole Parquet file (cut) and 1 more"),
        ([], "run is not complete"),
    ],
)  # fmt: skip
def test_losses_are_counted_from_the_remarks_of_readers(problems, said):
    assert damage(with_problems(*problems)) == f"Damaged trace: {said}; all figures are of the rest."


def test_trace_with_problems_is_damaged_whatever_its_metadata_claims():
    assert damage(with_problems("rank 3: left out, 3.cst: damaged", complete=None)) is not None


def test_several_damaged_traces_are_summed_and_the_worst_is_named():
    one = with_problems("rank 0: 300 calls left out, x", ranks=1)
    two = with_problems("rank 0: 100 calls left out, y", "rank 1: 200 calls left out, y", ranks=2)
    both = two.model_copy(
        update={
            "traces": [*one.traces, *(t.model_copy(update={"path": "/t/worse"}) for t in two.traces)],
            "workflow": two.workflow.model_copy(update={"processes": 3}),
        }
    )
    assert damage(both) == (
        "Damaged traces: 3 of 3 ranks are lost, 25 % of the calls (worse, ranks 0, 1: y; 1 more trace like it); all "
        "figures are of the rest."
    )


@pytest.mark.parametrize(
    "problem",
    [
        HOSTILE,
        f"rank 3: left out, {HOSTILE}",
        "rank 3: left out, " + "x" * 1_000_000,
        "ranks 0 to 999999999: 5 calls left out, x",
        "rank 999999999: 999999999999999 of 1 calls left out, x",
        "rank 1: 999999999999999999999999999999 calls left out, x",
    ],
)
def test_sentence_is_short_and_one_line_for_any_document(problem):
    profile = with_problems(problem)
    path = {"traces": [profile.traces[0].model_copy(update={"path": HOSTILE * 50})]}
    said = damage(profile.model_copy(update={"provenance": {f"traces[{HOSTILE}]": HOSTILE}, **path}))
    assert said.isprintable() and len(said) < 700
    assert "of 100 ranks" in said or "ranks" not in said


# --- in the report --------------------------------------------------------------------------------------------------


def report_of(profile: Profile) -> Inputs:
    """A report on a profile whose advice has nothing to do."""
    advice = judged()
    first = advice.recommendations[0].model_copy(update={"severity": "info"})
    return inputs_of(profile, advice.model_copy(update={"recommendations": [first]}))


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    """A profile that lost half of its ranks, and its report's first sentence."""
    folder = tmp_path_factory.mktemp("lossy")
    trace = copied("v3-ckpt-then-restart-8r", folder)
    cut(trace / "ug.cfg", 0.6)
    profile = profiled(trace, folder)
    return profile, damage(profile)


def test_text_begins_with_the_damage(lossy):
    profile, said = lossy
    assert " ".join(text(report_of(profile)).split()).startswith(f"{said} {profile.apps[0].name} ")


def test_markdown_begins_with_the_damage(lossy):
    profile, said = lossy
    first = markdown(report_of(profile)).splitlines()[0]
    assert first.startswith("**Damaged trace") and first.replace("\\", "") == f"**{said}**"


@pytest.mark.slow
def test_page_begins_with_the_damage(lossy):
    profile, said = lossy
    made = page(report_of(profile))
    main = made.partition("<main")[2].partition("</main>")[0]
    assert Page(f"<main{main}").text().split(said)[0].strip() == ""
    assert main.count(said) == 1 and '<p class="damage" role="note">' in main


@pytest.mark.parametrize("write", [page, markdown, text])
def test_a_trace_that_lost_a_part_gives_no_all_clear(write, lossy):
    idle = lossy[0].workflow.model_copy(update={"runtime_s": 1e4, "io_time_share": 1e-5, "io_time_share_slowest": 1e-5})
    made = write(report_of(lossy[0].model_copy(update={"workflow": idle, "verdict": None})))
    words = " ".join((Page(made).text() if write is page else made).split())
    assert "the lost part may change that" in words
    assert "Nothing needs to be done" not in words and "Trace it again" in words


@pytest.mark.parametrize("write", [page, markdown, text])
def test_report_about_a_complete_trace_does_not_mention_damage(write, tmp_path):
    made = write(report_of(profiled(TRACES / "v3-posix-mix-4r", tmp_path)))
    shown = Page(made).text() if write is page else made
    assert "Damaged" not in shown and "the rest of the trace" not in shown
    assert "the verdict is open" in shown
