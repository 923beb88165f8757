"""The verdict of a check on GitHub: annotations that a hostile name cannot forge, and the summary of a job."""

from __future__ import annotations

import re

import pytest
from check_documents import check, checks, excepted, judgement, mixed, passed, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import examples
from markdown_it import MarkdownIt

from vani.render.code_hosts import _row, summary
from vani.render.code_hosts import to_github as render
from vani.schema.check import PolicyPlace


def annotations(document) -> list[str]:
    return render(document, version="1.2.3").splitlines()


def as_read_by_the_runner(line: str) -> tuple[str, dict[str, str], str]:
    """Command, properties and message, as parsed by `ActionCommand.TryParseV2` of actions/runner."""

    def unescaped(text, *more):
        for escape, character in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
            text = text.replace(escape, character)
        return text

    assert line.startswith("::")
    end = line.index("::", 2)
    name, _, told = line[2:end].partition(" ")
    pairs = (pair.split("=", 1) for pair in told.strip().split(",") if pair)
    properties = {key: unescaped(value, ("%3A", ":"), ("%2C", ",")) for key, value in pairs}
    return name, properties, unescaped(line[end + 2 :])


# --- annotations ----------------------------------------------------------------------------------


def test_failure_annotates_the_policys_line():
    assert render(check(judgement()), version="1.2.3") == (
        "::error file=vani.toml,line=7,title=metadata-ops (error)::"
        "4,097 metadata operations; at most 100 are allowed; open the file once\n"
    )


def test_levels_and_what_could_not_be_judged():
    assert annotations(mixed())[1:] == [
        "::warning file=vani.toml,line=12,title=bandwidth-drop (warning)::half as fast as the baseline",
        "::notice title=vani check::1 could not be judged. The job's summary has all of them.",
    ]


def test_passed_and_excepted_checks_give_no_annotation():
    assert render(check(passed(), excepted()), version="1.2.3") == ""


@pytest.mark.parametrize("failures", [9, 10])
def test_ten_fit(failures):
    assert len(annotations(check(*(judgement(id=f"m: {i}") for i in range(failures))))) == failures


def test_the_ten_worst_are_shown_and_the_rest_is_counted():
    levels = ["note"] * 4 + ["warning"] * 7 + ["error"] * 5
    lines = annotations(check(*(judgement(id=f"m: {i}", level=level) for i, level in enumerate(levels))))
    assert [line.split()[0] for line in lines[:10]] == ["::error"] * 5 + ["::warning"] * 5
    assert lines[10:] == [
        "::notice title=vani check::6 more: 2 warnings, 4 notes. The job's summary has all of them."
    ]


def test_many_failures_do_not_hide_other_checks():
    many = [judgement("a-files", id=f"a-files: {i:05}") for i in range(5000)]
    others = [judgement("z-size", level="error"), judgement("b-notes", level="note")]
    lines = annotations(check(*many, *others))
    assert [line.split("title=")[1].split(" ")[0] for line in lines[:10]] == ["a-files", "z-size", *["a-files"] * 8]
    assert lines[10].startswith("::notice title=vani check::4992 more: 4991 errors, 1 note.")


def test_notices_leave_room_for_the_count_of_the_rest():
    lines = annotations(check(*(judgement(id=f"m: {i}", level="note") for i in range(12))))
    assert len(lines) == 10
    assert lines[-1] == "::notice title=vani check::3 more: 3 notes. The job's summary has all of them."


@pytest.mark.parametrize(
    "path",
    [
        "a,line=1",
        "a::set-output name=x::y",
        "a\n::add-mask::x",
        "50%25",
        "a%0A::error::b",
        "##[add-path]/tmp",
    ],
)
def test_hostile_path_is_only_a_path(path):
    lines = annotations(check(judgement(place=PolicyPlace(path=path, line=7))))
    assert len(lines) == 1
    name, properties, message = as_read_by_the_runner(lines[0])
    assert name == "error"
    assert properties == {"file": path.replace("\n", "\\n"), "line": "7", "title": "metadata-ops (error)"}
    assert message.startswith("4,097 metadata operations")


@settings(max_examples=examples(150), deadline=None)
@given(checks())
@pytest.mark.slow
def test_runner_reads_exactly_the_intended_commands(document):
    text = render(document, version="1.2.3")
    assert text == render(document, version="1.2.3")
    text.encode()
    lines = text.split("\n")[:-1]
    assert len(lines) <= 11
    failed = [one for one in document.judgements if one.status == "fail"]
    kinds = []
    for line in lines:
        assert line.isprintable()
        name, properties, _ = as_read_by_the_runner(line)
        kinds.append(name)
        assert name in {"error", "warning", "notice"}
        assert properties.keys() <= {"file", "line", "title"}
    assert all(kinds.count(name) <= 10 for name in set(kinds))
    assert len(lines) >= min(len(failed), 9)


# --- the summary ----------------------------------------------------------------------------------


def cells(row: str) -> list[str]:
    """Cells of a table row, as cmark-gfm splits it: a bar counts unless an unescaped backslash precedes it."""
    return re.findall(r"((?:\\[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]|[^|])*)\|", row.removeprefix("|"))


def test_the_summary_as_a_whole():
    assert (
        summary(mixed())
        == r"""## :x: vani check

- 4,097 metadata operations; at most 100 are allowed; open the file once
- half as fast as the baseline

fail: 1 error, 1 warning, 1 passed, 1 excepted, 1 unknown (fails on: error)

Profile <code>runs/profile.yaml</code>, policy <code>vani.toml</code>

| | level | check | of | value | allowed | baseline | change | found |
| --- | --- | --- | --- | ---: | --- | ---: | ---: | --- |
| failed | error | <code>metadata-ops</code> | <code>workflow.io.ops.metadata</code> | <code>4097</code> | <code>\<= 100</code> |  |  | 4,097 metadata operations; at most 100 are allowed; open the file once |
| failed | warning | <code>bandwidth-drop</code> | <code>ior</code> | <code>5e+08</code> | <code>\>= -10 %</code> | <code>1e+09</code> | -50.0% | half as fast as the baseline |
| excepted | warning | <code>random</code> | <code>workflow.io.ops.metadata</code> | <code>4097</code> | <code>\<= 100</code> |  |  | 4,097 metadata operations; at most 100 are allowed (until 2027-03-31\: waits for the new reader) |
| unknown | error | <code>bandwidth</code> | <code>workflow.io.ops.metadata</code> |  | <code>\<= 100</code> |  |  | the attribute is null\: no end of a file is known |
| passed | error | <code>share</code> | <code>workflow.io.ops.metadata</code> | <code>0.25</code> | <code>\<= 0.5</code> |  |  | a share of 0.25 |
"""
    )


def test_nothing_to_check_has_no_table():
    assert summary(check()).splitlines()[:3] == [
        "## :white_check_mark: vani check", "", "pass: nothing was checked (fails on: error)",
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(checks())
def test_no_text_leaves_its_cell_or_becomes_markup(document):
    text = summary(document)
    assert text == summary(document)
    assert all(c.isprintable() or c == "\n" for c in text)
    rows = [line for line in text.split("\n") if line.startswith("| ")][2:]
    assert len(rows) == len(document.judgements)
    assert all(len(cells(row)) == 9 for row in rows)
    # As parsed by another Markdown reader: our table, and code; no link, emphasis, HTML or picture.
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    assert {block.tag for block in blocks} <= {"", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert sum(block.type == "td_open" for block in blocks) == 9 * len(rows)
    inline = [part for block in blocks for part in block.children or ()]
    assert {part.type for part in inline} <= {"text", "text_special", "html_inline", "softbreak"}
    assert {part.content for part in inline if part.type == "html_inline"} <= {"<code>", "</code>"}
    # Text that GitHub would link without markup.
    assert not re.search(r"(?i)\bwww\.|(?<!\\)://|(?<!\\)[@#]\w", text)


def test_markdown_reader_shows_the_intended_text():
    name = r"a|b\|c \*d* `e` <i>f</i> &lt; [g](http://h) ~i~ :x: @j #1 _k_ $l$ !m"
    text = summary(check(judgement(message=name, target=name)))
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    shown = ["".join(part.content for part in block.children) for block in blocks if block.type == "inline"]
    assert shown[-6] == f"<code>{name}</code>"
    assert shown[-1] == f"{name}; open the file once"


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(texts, min_size=1, max_size=4))
def test_bar_never_ends_a_cell(parts):
    row = _row(
        judgement("|".join(parts), message="\\|".join(parts), target="\\" * len(parts) + "|")
    )
    assert len(cells(row)) == 9


def test_large_summary_is_cut_with_a_note():
    many = [judgement(id=f"m: {i}", target="x" * 400, message="é" * 400) for i in range(1500)]
    text = summary(check(*many, *(passed(id=f"p: {i}") for i in range(10))))
    assert 900_000 < len(text.encode()) <= 1024 * 1024
    shown = text.count("\n| failed")
    assert 500 < shown < 1500
    assert text.endswith(
        f"\n\n{1510 - shown} rows are left out ({1500 - shown} failed, 10 passed): the summary of a step is limited to 1 MiB.\n"
    )
