"""Names that say what a thing is, and docstrings that begin with it, in the whole package."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from parsed_code import parsed, statements

ROOT = Path(__file__).resolve().parent.parent
CODE = ("vani", "schema", "analyzers", "advisors")

# Words that fit any variable; a noun says more about its content.
FILLERS = {"found", "one", "told", "held", "asked", "kept", "made", "mine"}

# Keys of documents with such names.
KEYS = {"schema": 1, "vani/centre": 2}

# Names that only say that something is shared.
SHAPELESS = re.compile(r"utils?|helpers?|managers?|common|misc|stuff")


@cache
def trees() -> dict[str, ast.Module]:
    """Parsed modules by path; rglob does not follow the three links, so each counts once."""
    return {
        path.relative_to(ROOT).as_posix(): parsed(path)
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def room_of(path: str) -> str:
    """`vani/api`, `schema`, ...; a module directly below `vani` belongs to the room `vani`."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "vani" and len(parts) > 2 else parts[0]


def fillers(tree: ast.Module) -> int:
    names = (
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.arg))
    )
    return sum(name in FILLERS for name in names)


def docstrings(tree: ast.Module) -> list[str]:
    """Docstrings of modules, classes and functions, and of attributes."""
    texts = (statement.value for statement in statements(tree) if isinstance(statement, ast.Expr))
    return [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]


def by_room(count) -> dict[str, int]:
    total = Counter()
    for path, tree in trees().items():
        total[room_of(path)] += count(tree)
    return {room: number for room, number in total.items() if number}


def test_no_local_name_is_a_filler():
    assert by_room(fillers) == KEYS


def test_docstrings_begin_with_a_noun_or_a_verb():
    assert by_room(lambda tree: sum(text.startswith("What ") for text in docstrings(tree))) == {}


def test_names_of_modules_classes_and_functions_are_meaningful():
    names = {Path(path).stem for path in trees()}
    for tree in trees().values():
        names |= {node.name for node in statements(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    wrong = {name for name in names if SHAPELESS.fullmatch(name.lower()) or name.lower() in FILLERS}
    assert wrong == set()
