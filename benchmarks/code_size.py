"""Prints the size of the code: `python -m benchmarks.code_size`.

Blank lines, comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("vani", "schema", "analyzers", "advisors")
SMALL = 30


def code_size(root: Path = ROOT) -> dict[str, int | float]:
    """Figures of a checkout, by name."""
    modules = [text for room in ROOMS for text in _texts(root / room, "*.py")]
    code = [_lines_of_code(text) for text in modules]
    pages = [*_texts(root / "docs", "*.md"), *(path.read_text() for path in root.glob("*.md"))]
    return {
        "modules": len(modules),
        "lines": sum(len(text.splitlines()) for text in modules),
        "lines of code": sum(code),
        f"modules below {SMALL} lines of code": sum(lines < SMALL for lines in code),
        "imports inside functions": sum(_imports_inside_functions(text) for text in modules),
        "modules entered by `vani profile` of the demo": _modules_entered(root),
        "words in docs": sum(len(text.split()) for text in pages),
        "lines of tests per line of code": round(
            sum(map(_lines_of_code, _texts(root / "tests", "*.py"))) / sum(code), 2
        ),
    }


def _texts(folder: Path, pattern: str) -> Iterator[str]:
    """Texts of a folder's files; links to other folders are not followed."""
    return (path.read_text() for path in sorted(folder.rglob(pattern)))


def _lines_of_code(text: str) -> int:
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in docstrings)
    return sum(line != "" and not line.startswith("#") for line in lines)


def _imports_inside_functions(text: str) -> int:
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    inner = (node for function in functions for node in ast.walk(function))
    return len({id(node) for node in inner if isinstance(node, ast.Import | ast.ImportFrom)})


def _modules_entered(root: Path) -> int:
    (demo,) = (path for path in (root / "vani" / "demo").iterdir() if (path / "recorder.mt").exists())
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-X", "importtime", "-m", "vani", "profile", str(demo), "--quiet"]
        command += ["-o", f"{folder}/profile.yaml"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    names = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    return sum(name.partition(".")[0] == "vani" for name in names)


if __name__ == "__main__":
    for name, figure in code_size(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT).items():
        print(f"{name:<48} {figure:>10,}")
