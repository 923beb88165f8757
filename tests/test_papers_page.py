"""docs/papers.md: a row for each table and figure, and every figure of ours is printed by a command."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "papers.md"
TABLES_AND_FIGURES = {
    "Bez et al.": ("table", 4, "figure", 9),
    "Tarazu": ("table", 8, "figure", 23),
    "AIOT": ("table", 3, "figure", 17),
    "Xie et al.": ("table", 6, "figure", 5),
    "Vani": ("table", 11, "figure", 8),
}
"""Number of tables and figures in each paper."""
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")
PRINTED = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\s?(?:ms|us|s|min)\b)(?!\w|\.\d)")


def rows(section: str) -> list[list[str]]:
    """Cells of the ledger's rows below a heading: paper, printed, here, difference, by."""
    text = PAGE.read_text().partition(f"\n## {section}")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [
        row for row in cells if len(row) == 5 and row[0] != "of the paper" and not row[0].startswith("---")
    ]


ROWS = [(section, row) for section in TABLES_AND_FIGURES for row in rows(section)]


def modules(row: list[str]) -> list[str]:
    """Benchmarks named in a row."""
    named = re.findall(r"`(\w+)`", row[4])
    return [name for name in named if (ROOT / "benchmarks" / f"{name}.py").is_file()]


def numbers(text: str, pattern: re.Pattern[str] = NUMBER) -> set[str]:
    return {number.replace(",", "").rstrip(".") for number in pattern.findall(text)}


def meant(text: str, word: str) -> set[int]:
    """Numbers of the tables or figures in a first cell: `figures 1 to 3, 7`, `table IV`."""
    found: set[int] = set()
    for part in re.findall(rf"{word}s?\s+((?:(?:[IVX]+|\d+)(?:, | to | and )?)+)", text, re.IGNORECASE):
        arabic = re.sub(r"\b[IVX]+\b", lambda some: str(ROMAN.index(some[0]) + 1), part)
        for first, last in re.findall(r"(\d+)(?:\s+to\s+(\d+))?", arabic):
            found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("section", TABLES_AND_FIGURES)
def test_each_table_and_figure_of_a_paper_has_a_row(section):
    some = [row[0] for row in rows(section)]
    for word, count in zip(*[iter(TABLES_AND_FIGURES[section])] * 2, strict=True):
        named = set().union(*(meant(text, word) for text in some))
        assert set(range(1, count + 1)) - named == set(), word


@pytest.mark.parametrize(
    "row", [row for _, row in ROWS], ids=[f"{section}: {row[0]}" for section, row in ROWS]
)
def test_a_row_names_a_command_a_page_or_why_there_is_none(row):
    by = row[4]
    for path in re.findall(r"\]\(([^)#]+)", by):
        assert (PAGE.parent / path).exists(), path
    for path in re.findall(r"tests/[\w/]+\.py|tests/[\w/]+", by):
        assert (ROOT / path).exists(), path
    assert (
        modules(row)
        or "](" in by
        or "tests/" in by
        or "vani " in by
        or "not " in row[3]
        or "nothing" in row[3]
    )


@cache
def printed(name: str) -> str:
    """The complete output of a benchmark."""
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [row for _, row in ROWS if modules(row)], ids=[row[0] for _, row in ROWS if modules(row)]
)
def test_each_figure_of_ours_is_printed_by_the_command_that_the_row_names(row):
    out = set().union(*(numbers(printed(name), PRINTED) for name in modules(row)))
    assert numbers(row[2]) - out == set()
