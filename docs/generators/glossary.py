"""The page of all terms that the report explains: `python docs/generators/glossary.py [FILE]` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from vani.render.report.glossary import GLOSSARY


def page() -> str:
    """All terms with their meanings, in Markdown, in alphabetical order."""
    rows = [f"- **{term.name}**: {term.meaning}" for term in GLOSSARY]
    return (
        "<!-- Made from vani/render/report/glossary.py by `make docs`; edit that. -->\n\n# Glossary\n\n"
        "The words that the report explains where it uses them.\n\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/glossary.md").write_text(page(), encoding="utf-8")
