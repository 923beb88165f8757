"""The report as Markdown and as text: short, in order, harmless."""

from __future__ import annotations

import re
from functools import cache

import pytest
from report_inputs import file_at, golden, hostile, inputs_of, judged, with_files

from vani.render.report.markdown import MAX_LETTERS
from vani.render.report.markdown import to_markdown as markdown
from vani.render.report.text import to_text as text

WRITERS = [markdown, text]


@cache
def matters():
    """A report with two things to do."""
    advice = judged()
    found = [one.model_copy(update={"severity": "high"}) for one in advice.recommendations[1:3]]
    rest = list(advice.recommendations[3:])
    return inputs_of(golden(), advice.model_copy(update={"recommendations": [advice.recommendations[0], *found, *rest]}))


@pytest.mark.parametrize("write", WRITERS)
def test_screen_states_run_share_of_io_and_actions_in_order(write):
    made = write(matters())
    first = matters().advice.recommendations[1]
    places = [made.index(words) for words in (golden().apps[0].name, "I/O takes 0.11 % of the run", first.name, first.apply[0])]
    assert places == sorted(places)


@pytest.mark.parametrize("write", WRITERS)
def test_the_same_inputs_give_the_same_bytes(write):
    assert write(matters()) == write(matters())


@pytest.mark.parametrize("write", WRITERS)
def test_hostile_names_reach_no_terminal_and_no_host(write):
    made = write(inputs_of(*hostile(30)))
    assert [c for c in made if not c.isprintable() and c != "\n"] == []
    assert not re.search(r"^::", made, re.MULTILINE)
    made.encode()


@pytest.mark.parametrize("write", WRITERS)
def test_no_heat_map_is_needed(write):
    assert "no such thing" not in write(inputs_of(golden(), judged(), heat="no such thing"))


# --- Markdown ---------------------------------------------------------------------------------------------


def unfenced(made):
    """Markdown without code blocks and spans."""
    made = re.sub(r"^(`{3,})sh\n.*?^\1$", "", made, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", made)


def test_details_are_folded_and_every_fold_is_closed():
    made = markdown(matters())
    assert made.count("<details>") == made.count("</details>") > 4
    top, _, _ = made.partition("<details>")
    assert len(top.splitlines()) < 60


def test_rows_of_tables_have_as_many_cells_as_their_heads():
    for made in (markdown(matters()), markdown(inputs_of(*hostile(30)))):
        table = []
        for line in [*made.splitlines(), ""]:
            if line.startswith("|"):
                table.append(len(re.findall(r"(?<!\\)\|", line)))
            elif table:
                assert len(set(table)) == 1
                table = []


def test_names_cannot_become_markup():
    made = unfenced(markdown(inputs_of(*hostile(30))))
    tags = {tag.lower() for tag in re.findall(r"(?<!\\)</?([a-zA-Z]+)", made)}
    assert tags <= {"details", "summary"}


@pytest.mark.slow
def test_long_report_is_cut_at_its_folds_with_a_note():
    profile, advice = hostile(2000)
    lines = ["echo " + "`" * 10 + "x" * 450] * 500
    many = [one.model_copy(update={"apply": lines, "rule": f"TST{i}"}) for i in range(30) for one in advice.recommendations]
    made = markdown(inputs_of(profile, advice.model_copy(update={"recommendations": many})))
    assert len(made) <= MAX_LETTERS
    assert "Left out for its length: " in made
    assert made.count("<details>") == made.count("</details>")


# --- text ---------------------------------------------------------------------------------------------------


def test_only_lines_to_paste_are_wider_than_a_terminal():
    pasted = {line for one in matters().advice.recommendations for line in one.apply}
    wide = [line for line in text(matters()).splitlines() if len(line) > 80 and line.strip() not in pasted]
    assert wide == []


def test_wide_tables_give_way_at_names():
    files = [file_at(f"/s/{'very_long_folder_name/' * 8}{chr(97 + i)}.dat") for i in range(3)]
    made = text(inputs_of(with_files([*files, file_at("/t/x")])))
    assert max(map(len, made.partition("\nFiles\n")[2].splitlines())) <= 80
    assert "a.dat" in made


def test_dataset_is_shown_in_one_line():
    files = [file_at(f"/s/out_{i:05d}.dat") for i in range(500)]
    made = text(inputs_of(with_files([*files, file_at("/t/x")])))
    assert made.count("out_%05d.dat") == 1
    assert "out_00001" not in made
