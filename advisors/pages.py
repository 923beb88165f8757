"""Write the documentation page of every rule and their index: `python -m vani.advisors.pages [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from vani.advisors.catalogue import rules
from vani.advisors.rule import SECTIONS, Rule

__all__ = ["pages", "write_pages"]

_MADE = "<!-- Made from the rule's docstring by `make docs`; edit that. -->\n\n"


def pages() -> dict[str, str]:
    """Text of each page by its file name, in Markdown: one per rule and README.md, the index."""
    by_name = {f"{rule.id}.md": _page(rule) for rule in rules()}
    rows = [f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.page().finding} |" for rule in rules()]
    index = [
        "# Rules",
        "",
        "What `vani advise` looks at. `vani explain RULE` prints a rule's page.",
        "",
        "| id | name | finding |",
        "| --- | --- | --- |",
        *rows,
    ]
    return {"README.md": "<!-- Made by `make docs`. -->\n\n" + "\n".join(index) + "\n"} | by_name


def write_pages(folder: Path) -> None:
    """Make `folder` contain exactly the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = pages()
    for path in folder.glob("*.md"):
        if path.name not in by_name:
            path.unlink()
    for name, text in by_name.items():
        (folder / name).write_text(text, encoding="utf-8")


def _page(rule: type[Rule]) -> str:
    page = rule.page()
    parts = [f"# {rule.id} {rule.name}", page.finding]
    parts += [f"## {section}\n\n{page.sections[section]}" for section in SECTIONS]
    if thresholds := rule.thresholds():
        rows = "\n".join(f"| `{name}` | {value} |" for name, value in thresholds.items())
        parts.append(f"## Thresholds\n\n| name | default |\n| --- | --- |\n{rows}")
    return _MADE + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/rules"))
