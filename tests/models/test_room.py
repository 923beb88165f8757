"""Imports that a performance model may have."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import vani.models

MODELS = sorted(Path(vani.models.__path__[0]).rglob("*.py"))
ALLOWED = ("vani.models", "vani.schema", "vani.units", "vani.errors")


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return modules | {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_knows_documents_and_units_and_no_rule(path):
    wrong = {name for name in imported(path) if name.startswith("vani") and not name.startswith(ALLOWED)}
    assert wrong == set()
    assert not imported(path) & {"networkx", "pyarrow", "pandas", "dask"}
