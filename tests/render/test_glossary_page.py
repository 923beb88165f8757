"""The page of terms is generated from the terms that the report explains."""

from __future__ import annotations

from pathlib import Path

from generators.glossary import page

from vani.render.report.glossary import GLOSSARY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `make docs`"


def test_every_word_of_the_report_is_on_the_page():
    assert [line for line in page().splitlines() if line.startswith("- **")] == [
        f"- **{term.name}**: {term.meaning}" for term in GLOSSARY
    ]
