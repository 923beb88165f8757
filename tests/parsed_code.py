"""Parsed modules, for tests that look at all code: parsing it takes seconds, and so does searching all expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["parsed", "statements", "statements_in"]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers of exceptions and cases directly inside a node, whose expressions are not searched."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from getattr(node, name, ())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """This node and all that `statements_in` finds at any depth."""
    yield node
    for inside in statements_in(node):
        yield from statements(inside)
