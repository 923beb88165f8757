"""Properties of all rules."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
import yaml
from generators.rules import pages

import vani.advisors
from vani.advisors.catalogue import find, page_text, rules
from vani.advisors.lustre.layout_choice import LayoutRule
from vani.advisors.rule import SECTIONS, Rule
from vani.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "advisors" / "cases"

def test_every_rule_in_a_family_is_found():
    # A family without __init__.py would be skipped silently. Shared modules of rules have no id.
    files = {
        path.relative_to(ROOT / "advisors")
        for path in (ROOT / "advisors").glob("*/*.py")
        if re.search(r"^    id = ", path.read_text(), re.MULTILINE)
    }
    found = {Path(rule.family) / f"{rule.__module__.rpartition('.')[2]}.py" for rule in rules()}
    assert found == files


def check_file_class_and_rule_have_one_name(rule):
    # HDF5Caches is hdf5_caches, DataOnMDT data_on_mdt.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", rule.__name__).lower()
    assert words == rule.name
    assert Path(inspect.getfile(rule)).stem.replace("_", "-") == rule.name


def test_ids_and_names_are_unique():
    keys = [key for rule in rules() for key in (rule.id, rule.name)]
    assert len(set(keys)) == len(keys)


def check_a_rule_says_what_it_is(rule):
    assert re.fullmatch(r"[A-Z][A-Z0-9]{1,2}\d{3}", rule.id)
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)
    assert rule.__module__.split(".")[-2] == rule.family
    assert rule.sources
    assert all(rule.sources)


def check_a_rule_has_its_sections_in_order(rule):
    page = rule.page()
    assert tuple(page.sections) == SECTIONS
    assert page.finding.endswith(".")
    assert all(text.strip() for text in page.sections.values())


def bare_thresholds(of: type[Rule]) -> set[str]:
    """Numbers that a class assigns without a comment."""
    lines = Path(inspect.getfile(of)).read_text().splitlines()
    tree = ast.parse("\n".join(lines))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == of.__name__).body
    where = {n.targets[0].id: n.lineno for n in body if isinstance(n, ast.Assign)}
    return {
        name
        for name, line in where.items()
        if "#" not in lines[line - 1] and not lines[line - 2].lstrip().startswith("#")
    } & set(of.thresholds())


def check_a_threshold_has_its_source_beside_it(rule):
    assert {
        name for base in rule.__mro__ if issubclass(base, Rule) for name in bare_thresholds(base)
    } == set()


def test_rules_that_choose_a_plain_layout_share_their_thresholds():
    chosen = LayoutRule.thresholds()
    assert len(chosen) == 11
    assert find("LUS002").thresholds() == chosen
    assert find("LUS008").thresholds() == chosen | {"min_readers": 4}


def check_a_rule_has_cases_that_fire_and_cases_that_do_not(rule):
    cases = yaml.load((CASES / f"{rule.id}.yaml").read_text(), yaml.CSafeLoader)
    assert cases.pop("rule") == rule.id
    assert any("nothing" not in case["expect"] for case in cases.values())
    if rule.page().sections["Stays silent when"] != "Never.":
        assert any("nothing" in case["expect"] for case in cases.values())


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_rule_has_all_its_required_parts(rule):
    check_file_class_and_rule_have_one_name(rule)
    check_a_rule_says_what_it_is(rule)
    check_a_rule_has_its_sections_in_order(rule)
    check_a_threshold_has_its_source_beside_it(rule)
    check_a_rule_has_cases_that_fire_and_cases_that_do_not(rule)
    check_a_rule_is_explained_by_id_and_by_name(rule)
    check_a_rule_knows_no_other_rule(rule)


def test_every_case_has_a_rule():
    assert {path.stem for path in CASES.glob("*.yaml")} == {rule.id for rule in rules()}


def test_the_pages_in_docs_are_current():
    folder = ROOT / "docs" / "rules"
    written = {path.name: path.read_text() for path in folder.glob("*.md")}
    assert written == pages(), "run `make docs`, or `python docs/generators/rules.py`"


def check_a_rule_is_explained_by_id_and_by_name(rule):
    assert find(rule.id.lower()) is find(rule.name.upper()) is rule
    text = page_text(rule)
    assert text.startswith(f"{rule.id} {rule.name}\n")
    assert all(f"\n{section}\n" in text for section in SECTIONS)


def test_an_unknown_rule_names_the_nearest():
    with pytest.raises(InputError, match=r"no rule is called 'stripe-cuont'; did you mean stripe-count"):
        find("stripe-cuont")
    with pytest.raises(InputError, match="`vani explain` lists them all"):
        find("zzzzzzzz")


def test_finding_the_rules_loads_no_data_library():
    code = (
        "import sys; from vani.advisors.catalogue import rules; rules(); "
        "print({'numpy', 'pydantic', 'yaml', 'rich', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"


def test_a_rule_imports_only_models_documents_and_systems():
    rooms = ("advisors", "errors", "models", "plug_ins", "schema", "systems", "units")
    allowed = tuple(f"vani.{room}" for room in rooms)
    for path in Path(vani.advisors.__path__[0]).rglob("*.py"):
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
        names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        names += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        wrong = [n for n in names if n.startswith("vani") and not n.startswith(allowed)]
        assert wrong == [], path


def check_a_rule_knows_no_other_rule(rule):
    others = {other.__module__ for other in rules()} - {rule.__module__}
    tree = ast.parse(Path(inspect.getfile(rule)).read_text())
    froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    names = {n.module for n in froms} | {f"{n.module}.{one.name}" for n in froms for one in n.names}
    names |= {one.name for n in ast.walk(tree) if isinstance(n, ast.Import) for one in n.names}
    assert names & others == set()


def test_shared_modules_of_rules_import_no_rule():
    ours = {rule.__module__ for rule in rules()}
    # Only `judge` knows a rule: whether I/O matters bounds all others.
    shared = [
        path
        for path in (ROOT / "advisors").rglob("*.py")
        if not re.search(r"^    id = ", path.read_text(), re.MULTILINE) and path.name != "judge.py"
    ]
    for path in shared:
        froms = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        assert {n.module for n in froms} & ours == set(), path
