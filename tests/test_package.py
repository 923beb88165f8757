"""The repository as a whole: its layout, the cost of importing it, its dependencies."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from parsed_code import parsed, statements

import vani

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("schema", "analyzers", "advisors")
CODE = ("vani", *LINKED)

# Together they take more than a second; only code that decodes, validates or draws may load them.
HEAVY = {"dask", "distributed", "isal", "networkx", "numpy", "pandas", "pyarrow", "pydantic", "rich"}
# These only say that something is shared.
SHAPELESS = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def sources() -> list[Path]:
    """Files of all modules of Vani; rglob does not follow the links, so each counts once."""
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


def modules() -> list[str]:
    """Names of all modules, in the order of their files."""
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources())
    return [name.removesuffix(".__init__") if name.startswith("vani") else f"vani.{name}".removesuffix(".__init__") for name in names]


def loaded_packages(importtime: str) -> set[str]:
    """Top-level names in the report of `python -X importtime`."""
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", importtime, re.MULTILINE)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("folder", LINKED)
def test_a_top_level_folder_is_linked_into_the_package(folder):
    link = ROOT / "vani" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder


def test_checkout_without_links_explains_the_remedy(tmp_path):
    # As git creates it if core.symlinks is false.
    shutil.copytree(ROOT / "vani", tmp_path / "vani", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in LINKED:
        (tmp_path / "vani" / folder).unlink()
        (tmp_path / "vani" / folder).write_text(f"../{folder}")
    for arguments in (["--version"], ["profile", "x"], ["systems"]):
        done = subprocess.run(
            [sys.executable, "-m", "vani", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch("vani: vani/schema: is a file of text .*`git config core.symlinks true && rm .*`\n", done.stderr)


@pytest.mark.parametrize("folder", LINKED)
def test_a_linked_package_refuses_its_bare_name(folder):
    done = run_python("-c", f"import {folder}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: this package is vani.{folder}")


@pytest.mark.parametrize("folder", LINKED)
def test_a_linked_package_imports_under_its_full_name(folder):
    done = run_python("-c", f"import vani.{folder}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments", [("-c", "import vani"), ("-m", "vani", "--help")]
)
def test_commands_without_data_load_no_heavy_library(arguments):
    done = run_python("-X", "importtime", *arguments)
    assert done.returncode == 0, done.stderr
    loaded = loaded_packages(done.stderr)
    assert "vani" in loaded
    assert not loaded & HEAVY


def test_the_public_names_of_vani_resolve():
    assert set(vani.__all__) <= set(dir(vani))
    assert [name for name in vani.__all__ if getattr(vani, name) is None] == []


def test_an_unknown_name_of_vani_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No vani attribute advice"):
        vani.advice  # noqa: B018 - the access itself is what must fail


def test_exported_names_exist():
    wrong = []
    for name in modules():
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        exported = getattr(module, "__all__", [])
        if len(exported) != len(set(exported)) or not all(hasattr(module, item) for item in exported):
            wrong.append(name)
    assert wrong == []


def test_version_matches_the_changelog_and_the_citation():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert newest is not None
    assert cited is not None
    assert newest[1] == cited[1] == vani.__version__


def test_no_module_is_named_after_its_shape():
    folders = [ROOT / folder for folder in (*CODE, "tests", "benchmarks", "examples")]
    paths = [path for folder in folders for path in (folder, *folder.rglob("*.py"))]
    words = {
        path: set(path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").split("_"))
        for path in paths
    }
    assert [path for path in paths if words[path] & SHAPELESS] == []


def lines_of_code(path: Path) -> int:
    """Number of lines without docstrings, comments and blank lines."""
    texts = set()
    for node in statements(parsed(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(number not in texts and line.strip()[:1] not in ("", "#") for number, line in lines)


def test_no_module_has_more_than_600_lines_of_code():
    folders = [ROOT / folder for folder in (*CODE, "benchmarks")]
    lines = {
        path.relative_to(ROOT).as_posix(): lines_of_code(path)
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert {path: length for path, length in lines.items() if length > 600} == {}


def test_only_a_cluster_needs_more_of_dask():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    always = {re.match(r"[\w.-]+", item)[0] for item in project["dependencies"]}
    assert "dask" in always
    extra = {re.match(r"[\w.-]+", item)[0] for item in project["optional-dependencies"]["cluster"]}
    assert extra == {"cryptography", "dask-jobqueue", "distributed"}
    # No other module reports that a package is missing, and the next step.
    asked = {path.name for folder in CODE for path in (ROOT / folder).rglob("*.py") if "[cluster]" in path.read_text()}
    assert asked == {"cluster.py"}


def test_exactly_the_dependencies_are_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = [
        *project["project"]["dependencies"],
        *(item for group in project["project"]["optional-dependencies"].values() for item in group),
        *project["build-system"]["requires"],
    ]
    needed = {re.match(r"[\w.-]+", item)[0].lower() for item in declared}
    rows = re.findall(r"^\| `([^`]+)` \| \S.*", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert sorted(name.lower() for name in rows) == sorted(needed)


def test_trace_writers_for_tests_import_neither_vani_nor_benchmarks():
    # Formerly the tests' encoder and decoder were in benchmarks/, which imports Vani.
    for path in (ROOT / "tests" / "traces").glob("*.py"):
        assert re.findall(r"^(?:from|import) (?:vani|benchmarks)\b.*", path.read_text(), re.MULTILINE) == []


@cache
def imports_by_string() -> list[tuple[str, str]]:
    """Importer and imported module for imports by text: with `import_module`, or as `module:name` in a table."""
    return list(_imports_by_string())


def name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _imports_by_string() -> Iterator[tuple[str, str]]:
    known = modules()
    for name, path in zip(known, sources(), strict=True):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                target, _, attribute = node.value.partition(":")
                if target in known and target.count(".") >= (1 if attribute else 2):
                    yield name, target
            elif isinstance(node, ast.Call) and name_of(node.func).endswith("import_module"):
                folder = re.match(r"f'(vani(\.\w+)+)\.\{", ast.unparse(node.args[0]))
                # A catalogue that lists its own folder is not one of its entries.
                if folder and folder[1] != name.rpartition(".")[0]:
                    yield from ((name, module) for module in known if module.rpartition(".")[0] == folder[1])


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions and by string count; those only for type checkers do not."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("vani", exclude_type_checking_imports=True, cache_dir=None)
    assert graph.modules >= set(modules())
    for importer, imported in imports_by_string():
        # The package loads its public names on first use, and a document the model that its first line names.
        is_catalogue = importer in {"vani", "vani.schema.document"}
        if not is_catalogue and importer != imported:
            graph.add_import(importer=importer, imported=imported)
    circles = []
    for name in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(name)):
            way_back = graph.find_shortest_chain(imported, name) if imported != name else (name,)
            if way_back is not None:
                circles.append(" -> ".join((name, *way_back)))
    assert circles == []


def test_an_import_by_string_leads_to_the_same_layer_or_one_below():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    height = {
        package.strip("( )"): -number for number, layer in enumerate(contract["layers"]) for package in layer.split("|")
    }
    upward = {
        (importer, imported)
        for importer, imported in imports_by_string()
        if importer != "vani" and height[importer.split(".")[1]] < height[imported.split(".")[1]]
    }
    assert upward == set()


def ways_to_look() -> list[str]:
    """The commands in CONTRIBUTING that show who imports whom."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return re.search(r"^## See who imports whom\n.*?^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1].splitlines()


@pytest.mark.parametrize("line", ways_to_look())
def test_a_way_to_look_at_imports_sees_the_linked_folders(line):
    program, *arguments = shlex.split(line)
    found = shutil.which(Path(program).name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None or (program == "git" and not (ROOT / ".git").exists()):
        pytest.skip(f"{program} is not here")
    if "python" in program:
        pytest.importorskip("grimp")
    done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    # Results that a search of vani/ without its links would miss.
    shown = r'-> +"\.(analyzers|measures)"|vani\.analyzers\.entities\.io_stats\b|\banalyzers/[a-z_/]+\.py'
    assert re.search(shown, done.stdout)


def test_drawing_of_the_packages_matches_the_contract_in_order():
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawing = re.search(r"^## Packages and layers\n+```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    begin = 0
    for layer in layers[1:]:
        # Reserved names are in parentheses.
        packages = [name.strip() for name in layer.split("|") if "(" not in name]
        found = [re.compile(rf"\b{name}\b").search(drawing, begin) for name in packages]
        assert all(found), f"{layer} is not in the drawing, or above what it may import"
        begin = max((one.end() for one in found), default=begin)


def test_no_test_imports_from_conftest():
    """Several modules have that name; which one an import finds depends on the folders that run together."""
    tests = Path(__file__).parent
    found = [
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if re.search(r"^\s*(from|import) conftest\b", path.read_text(), re.MULTILINE)
    ]
    assert found == []


def test_test_modules_have_distinct_names():
    # Formerly two of them stopped the run with a plain installed pytest, after the whole suite.
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
