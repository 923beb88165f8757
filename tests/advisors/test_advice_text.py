"""The first screen of advice for a scientist."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from builders import file, profile, shared, system
from rich.console import Console

from vani.advisors.judge import advise_document
from vani.render.answers import PROGRAM
from vani.render.screen import print_advice
from vani.schema.advice import Recommendation, Target
from vani.units import GiB, MiB


def screen(advice, width=80, a_profile=None) -> str:
    text = StringIO()
    print_advice(advice, a_profile, Console(file=text, width=width, color_system=None))
    return text.getvalue()


def files(count):
    return [shared(f"/lustre/d{i}/out", written=GiB, time_s=400, busy_s=50 - i) for i in range(count)]


def test_first_line_states_whether_io_matters():
    text = screen(advise_document(profile(files(1)), system()))
    assert text.startswith("I/O takes 50 % of the run in the slowest process (rank 3), 60 % in")
    assert re.search(r"\n1\. stripe-count \(LUS002\), medium priority, 80 % sure", text)
    assert re.search(r"\n     lfs setstripe -c \d+ -S \d+M /lustre/d0\n", text)
    assert re.search(r"\n\d+ rules had nothing to recommend \(see `-o advice.yaml`\)", text)


@pytest.mark.parametrize("width", [40, 80, 97])
def test_no_line_ends_with_blanks(width):
    text = screen(advise_document(profile(files(3)), system()), width)
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def recommendation(rule, path, severity="low"):
    return Recommendation(
        rule=rule, name="plain", severity=severity, confidence=0.5, target=Target(kind="file", path=path),
        current={}, recommended={}, evidence=[], reason=f"Because of {path}.", expected=None, apply=[], source=[],
    )  # fmt: skip


def advice_of(*recommendations):
    return advise_document(profile(), system(), select=["POS001"]).model_copy(
        update={"recommendations": list(recommendations)}
    )


def test_three_recommendations_then_one_line_each():
    text = screen(advice_of(*(recommendation(f"TST00{i}", f"/d{i}") for i in range(6))))
    assert [f"\n{number}. " in text for number in (1, 2, 3, 4)] == [True, True, True, False]
    also = text.partition("Also:\n")[2].splitlines()[:3]
    assert also == [f"  TST00{i} plain (low): /d{i}" for i in (3, 4, 5)]


def test_rule_is_shown_once_with_the_number_of_its_other_places():
    many = [recommendation("TST001", f"/d{i}") for i in range(4)]
    few = [recommendation("TST002", f"/e{i}", "info") for i in range(3)]
    text = screen(advice_of(*many, *few))
    assert text.count("TST001") == 1
    assert "   The same for /d1 and 2 more (see `-o advice.yaml`)." in text
    assert "\n2. " not in text
    assert "Also:\n  TST002 plain (info, 3 places): /e0\n" in text


def test_long_path_shows_its_end():
    line = screen(advice_of(recommendation("TST001", "/lustre/" + "long/" * 30 + "out.h5", "info")), width=60)
    assert re.search(r"\n  TST001 plain \(info\): \u2026\S+/out\.h5\n", line)


def test_more_than_ten_others_are_counted():
    text = screen(advice_of(*(recommendation(f"TST0{i}", "/d") for i in range(10, 30))))
    assert "  and 7 more (see `-o advice.yaml`)\n" in text


def test_unimportant_io_has_no_first_action():
    text = screen(advise_document(profile(files(2), slowest_s=1, busy_s=1), system()))
    assert " ".join(text.split()).startswith(
        "I/O takes 1 % of the run in the slowest process (rank 3): storage is not"
    )
    assert "\n1. " not in text
    assert "  LUS002 stripe-count (info, 2 places): /lustre/d0/out" in text


def test_lines_fit_80_columns_but_a_line_to_paste_is_never_broken():
    path = "/lustre/" + "long/" * 30 + "out"
    text = screen(advise_document(profile([shared(path, written=GiB, time_s=400, busy_s=50)]), system()))
    long = [line for line in text.splitlines() if len(line) > 80]
    assert all(line.lstrip().startswith(("lfs ", "#")) for line in long)
    assert re.search(rf"lfs setstripe -c \d+ -S \d+M {path.removesuffix('/out')}", text)


@pytest.mark.parametrize("name", ["[bold red]x[/]", "\x1b[31mred", "a\nb", ":smile:", "[/]", "\u202egnp"])
@pytest.mark.parametrize("role", ["input", "output"])
def test_a_path_is_neither_markup_nor_control(name, role):
    path = f"/lustre/{name}/out"
    moved = {"read": 8 * GiB} if role == "input" else {"written": 8 * GiB}
    found = profile([shared(path, time_s=400, busy_s=50, role=role, **moved)], app=name)
    text = screen(advise_document(found, system()), width=300)
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert name in text or repr(name)[1:-1] in text.replace("\\u202e", "\\u202e")


def test_verdict_exists_without_the_first_rule():
    advice = advise_document(profile(files(1)), system(), ignore=["MAT001"])
    assert screen(advice).startswith("I/O takes 50 % of the run in the slowest process (rank 3), 60 % in")


def test_older_advice_without_the_first_rule_uses_the_profile():
    found = profile(files(1))
    advice = advise_document(found, system(), ignore=["MAT001"]).model_copy(update={"verdict": None})
    assert screen(advice, a_profile=found).startswith("Some process does I/O in 60 % of the run (MAT001")
    assert screen(advice).startswith("Whether I/O matters was not judged")


def test_missing_machine_is_mentioned():
    found = profile([shared("/data/in", read=8 * MiB, footprint_read=MiB, time_s=80, busy_s=20)])
    text = screen(advise_document(found))
    assert "No machine was described" in text
    assert "MPI_Bcast" in text


def test_the_program_is_described_in_eight_lines_at_most():
    """One line per pattern, whose place is shortened at its beginning; hostile names stay on their line."""
    path = "/lustre/" + "deep/" * 40 + "out\x1b[31m\n.h5"
    written = {"written": 2000 * 5000, "transfer": 5000, "opens": 9000, "sync_ops": 2000, "interface": "stdio"}
    one = shared(path, **written, footprint_written=2 * MiB, random=0.3, consecutive=0.1, strided=0.6, time_s=9.0)
    reads = {"read": 9000 * 5000, "transfer": 5000, "footprint_read": 2 * MiB, "past_end": 9000 * 4000}
    shown = screen(advise_document(profile([one, file("/lustre/in", **reads)]), system()))
    lines = shown.split(f"{PROGRAM}\n")[1].split("\n\n")[0].split("\n")
    assert len(lines) == 9
    assert lines[-1].startswith("   and ")
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in shown
    assert any(".h5" in line and "\u2026" in line for line in lines)
