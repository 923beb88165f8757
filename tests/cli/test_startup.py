"""Modules that each command may load: users wait for start-up, and heavy modules are most of it.

`python -m benchmarks` measures times; a test of them would fail on a busy machine, but modules can be counted.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml"
TRACE = ROOT / "tests" / "data" / "traces" / "v3-cm1like-16r"
HEAVY = {
    "dask", "distributed", "dask_jobqueue", "jinja2", "networkx", "numpy", "pandas", "pyarrow", "pyarrow.dataset", "pydantic",
    "rich", "vani.readers.darshan.reader", "vl_convert", "yaml", "sqlalchemy",
}  # fmt: skip


def loaded(arguments, folder):
    heavy = f"set({sorted(HEAVY)!r})"
    code = (
        "import sys\n"
        "from vani.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        f"    print('loaded', end.code, *sorted({heavy} & sys.modules.keys()), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    word, status, *modules = run.stderr.splitlines()[-1].split()
    assert (word, status) == ("loaded", "0"), run.stderr
    return set(modules)


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["profile", "--help"], {"pydantic"}),
        (["plot", "--help"], {"pydantic"}),
        (["demo", "--help"], set()),
        (["plan", "job", "--help"], {"pydantic"}),
        (["history", "--help"], set()),
        (["history", "top", "--help"], set()),
        (["explain", "LUS002"], set()),
        (["explain"], set()),
        (["advise", PROFILE, "-o", "advice.yaml", "-q"], {"pydantic", "yaml"}),
        (["check", PROFILE, "--allow-empty"], {"pydantic", "yaml"}),
        (["diff", PROFILE, PROFILE], {"pydantic", "yaml"}),
        (["check", PROFILE, "--save", "b.yaml"], {"pydantic", "yaml"}),
        (["profile", TRACE, "-o", "p.yaml", "--store", "s", "-q"], {"numpy", "pyarrow", "pydantic", "yaml"}),
        (["profile", TRACE, "-o", "p.yaml", "--quick", "-q"], {"numpy", "pyarrow", "pydantic", "yaml"}),
        (["convert", TRACE, "s"], {"numpy", "pyarrow"}),
        (
            ["report", PROFILE, "-o", "r.html", "-q"],
            {"jinja2", "numpy", "pyarrow", "pydantic", "vl_convert", "yaml"},
        ),
    ],
    ids=lambda value: (
        " ".join(v.name if isinstance(v, Path) else v for v in value) if isinstance(value, list) else ""
    ),
)
@pytest.mark.slow
def test_a_command_loads_only_what_it_needs(arguments, allowed, tmp_path):
    assert loaded(arguments, tmp_path) - allowed == set()


def test_a_function_of_the_library_loads_its_own_modules_only():
    code = "import sys, vani; vani.profile; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(run.stdout.split()) == {"pydantic"}
    commands = {name.removeprefix("vani.cli.") for name in run.stdout.split() if name.startswith("vani.cli.")}
    assert commands == {"options", "output", "profile", "sources"}


def test_annotations_of_a_profile_are_not_parsed_again():
    # With string annotations, pydantic compiles each of some 270 when the models are loaded.
    parsed = [
        path.name
        for path in [
            *sorted((ROOT / "schema" / "profile").glob("*.py")),
            ROOT / "schema" / "dataset_facts.py",
        ]
        if "(Model):" in path.read_text() and "from __future__ import annotations" in path.read_text()
    ]
    assert parsed == []


def test_columns_have_no_unused_methods():
    # Each is compiled when its module is loaded, and classes with arrays can be neither compared nor printed.
    kept = []
    for path in sorted((ROOT / "analyzers").rglob("*.py")):
        for one in ast.walk(ast.parse(path.read_text())):
            if not isinstance(one, ast.ClassDef):
                continue
            made = [ast.unparse(decorator) for decorator in one.decorator_list]
            fields = [ast.unparse(line.annotation) for line in one.body if isinstance(line, ast.AnnAssign)]
            if made == ["dataclass(frozen=True)"] and any(
                "NDArray" in field or field == "Ints" for field in fields
            ):
                kept.append(f"{path.name}: {one.name}")
    assert kept == []
