"""docs/check.md agrees with the code."""

from __future__ import annotations

import re

from gate_cases import ROOT, read_policy

from vani.gate.tolerance import DEFAULTS, TABLE
from vani.schema.policy import CheckTable

PAGE = (ROOT / "docs" / "check.md").read_text()


def test_table_of_tolerances_matches_the_code():
    rows = re.findall(r"^\| (`\S.*`) \| (\S+) \| (\S+) \| (\w+) \| (\w+) \|$", PAGE, re.MULTILINE)
    assert [(p.strip("`"), float(r), float(a), d, level) for ps, r, a, d, level in rows for p in ps.split(", ")] == [
        (pattern, one.relative, one.absolute, one.direction, one.level) for pattern, one in TABLE
    ]


def test_built_in_list_matches_the_code():
    text = PAGE[PAGE.index("these are compared:") : PAGE.index("A value that only one of the runs has")]
    assert tuple(re.findall(r"`(\S+?)`", text)) == DEFAULTS


def test_every_key_of_the_policy_is_on_the_page():
    names = {field.alias or name for name, field in CheckTable.model_fields.items()}
    table = PAGE[PAGE.index("| key of `[check]`") :].split("\n\n")[0]
    assert {name.split(".")[0] for name in re.findall(r"^\| `(\S+)`", table, re.MULTILINE)} == names


def test_the_example_is_a_policy():
    checks = read_policy(ROOT / "examples" / "check" / "vani.toml")
    assert [one.name for one in checks.budgets] == ["metadata", "random-output", "write-phases", "small-files"]
    assert (len(checks.changes), len(checks.exceptions), checks.rules is not None) == (2, 1, True)
