"""Writes the page of every rule, their index, and the list of patterns: `python docs/generators/rules.py [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from vani.advisors.catalogue import patterns, rules
from vani.advisors.rule import SECTIONS, Rule

WITHOUT_CODE = {
    "CKP001": "the interval is a parameter of each program",
    "FWD001": "the batch system assigns I/O nodes",
    "FWD002": "administrators set forwarding nodes",
    "FWD003": "administrators set forwarding nodes",
    "GPF001": "the transfer size is a parameter of each program",
    "GPF003": "FLD001 shows how to pack files",
    "LUS009": "the target needs repair",
    "MAT001": "a verdict, not a setting",
    "POS006": "it depends on how the program divides its work",
    "WFL001": "the scheduler places programs",
}
"""Reasons why a rule's example has neither code nor a line to paste."""

_PAIRS = Path(__file__).parents[2] / "tests/pairs/pairs.yaml"
_MADE = "<!-- Made from the rule's docstring by `make docs`; edit that. -->\n\n"


def pages() -> dict[str, str]:
    """Markdown text of each page by file name: one per rule, README.md as the index, and patterns.md."""
    by_name = {f"{rule.id}.md": _page(rule) for rule in rules()}
    pairs = yaml.safe_load(_PAIRS.read_text(encoding="utf-8"))
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.page().finding} | {_tried_by(pairs.get(rule.id, {}))} |"
        for rule in rules()
    ]
    index = [
        "# Rules",
        "",
        "The rules of `vani advise`. `vani explain RULE` prints a rule's page: a line to paste, or code before and",
        "after. Rules without: " + "; ".join(f"{rule} ({why})" for rule, why in WITHOUT_CODE.items()) + ".",
        "Rules act on [patterns](patterns.md) of a program.",
        "",
        "Each rule is tried on a [pair](../../tests/pairs/pairs.yaml) of programs: it gives its advice before the",
        "change, and none after it. The pair runs under strace, or Recorder recorded it, or profiles are made by hand.",
        "",
        "| id | name | finding | pair |",
        "| --- | --- | --- | --- |",
        *rows,
    ]
    readme = "<!-- Made by `make docs`. -->\n\n" + "\n".join(index) + "\n"
    return {"README.md": readme, "patterns.md": _patterns()} | by_name


def _tried_by(pair: dict[str, Any]) -> str:
    kinds = {"run": "runs", "recorded": "recorded", "hand_made": "by hand", "missing": "none"}
    why = pair.get("why") or pair.get("missing")
    return " and ".join(word for kind, word in kinds.items() if kind in pair) + (f": {why}" if why else "")


def write_pages(folder: Path) -> None:
    """Write the pages to `folder` and remove other pages from it."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = pages()
    for path in folder.glob("*.md"):
        if path.name not in by_name:
            path.unlink()
    for name, text in by_name.items():
        (folder / name).write_text(text, encoding="utf-8")


def _patterns() -> str:
    cells = ((p.name, " ".join(p.page().sections["Definition"].split()), ", ".join(p.rules)) for p in patterns())
    rows = "".join(f"| `{name}` | {definition} | {acting} |\n" for name, definition, acting in cells)
    return (
        "<!-- Made by `make docs`. -->\n\n# Patterns\n\n"
        "[Diagnosis](../diagnosis.md) explains the words, `vani explain PATTERN` prints reasons and sources.\n\n"
        "| pattern | definition | rules |\n| --- | --- | --- |\n" + rows
    )


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
