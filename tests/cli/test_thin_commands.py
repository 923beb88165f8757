"""A command parses, calls one function and emits: its body has at most 15 lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CLI = Path(__file__).resolve().parents[2] / "vani" / "cli"
MAX_LINES = 15


def commands_in(path: Path) -> Iterator[ast.FunctionDef]:
    """Functions that click calls: their decorators end in `.command(...)` or `.group(...)`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            called = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
            if any(isinstance(f, ast.Attribute) and f.attr in ("command", "group") for f in called):
                yield node


def lines_of(command: ast.FunctionDef) -> int:
    """Lines from the first statement to the last, including comments but not the docstring."""
    body = command.body[1:] if ast.get_docstring(command) else command.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1


FOUND = [
    pytest.param(command, id=f"{path.stem}:{command.name}")
    for path in sorted(CLI.rglob("*.py"))
    for command in commands_in(path)
]


def test_all_commands_are_found():
    assert len(FOUND) >= 18


@pytest.mark.parametrize("command", FOUND)
def test_a_command_has_at_most_fifteen_lines(command):
    # Formerly check 27, profile 24, report 33, plot 24, demo 43.
    assert lines_of(command) <= MAX_LINES
