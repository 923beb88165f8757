"""Every rule against its cases: each entry of cases/<id>.yaml is a profile, a system and the expected result.

Settings are those of `builders`; sizes can be written as 64M (powers of 1024). `expect` contains `nothing`, a part
of the sentence, or the expected parts of the first recommendation. `together_with` lists rules that are evaluated,
too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import profile, shared, system

from vani.advisors.catalogue import find
from vani.advisors.judge import judge
from vani.schema.advice import Advice, ProfileRef, SystemRef
from vani.units import parse_bytes

CASES = Path(__file__).parent / "cases"
PAIRS = yaml.safe_load((Path(__file__).parents[1] / "pairs/pairs.yaml").read_text())


def load_cases() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.yaml")):
        tree = yaml.load(path.read_text(), yaml.CSafeLoader)
        rule = tree.pop("rule")
        found += [pytest.param(rule, case, id=f"{rule}-{name}") for name, case in tree.items()]
    return found


def plain(value: Any) -> Any:
    """Sizes and floats as YAML 1.1 leaves them: 64M and 827e6 are text there."""
    if isinstance(value, dict):
        return {key: item if key == "path" else plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value[:1].isdigit() and not value.startswith("0x"):
        return parse_bytes(value) if value[-1] in "KMGT" else float(value)
    return value


def repeated(path: str, repeat: int = 1, **settings: Any) -> list[dict[str, Any]]:
    """The file `repeat` times, with `$` in its path replaced by the number."""
    return [shared(path.replace("$", str(i)) if repeat > 1 else path, **settings) for i in range(int(repeat))]


def judged(rule: str, case: dict[str, Any]) -> Advice:
    """The advice of a rule, and those that its case names, on the case's profile."""
    settings = plain(case.get("profile", {}))
    files = [made for one in settings.pop("files", []) for made in repeated(**one)]
    return judge(
        profile(files, **settings),
        system(**plain(case.get("system", {}))),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=[rule, *case.get("together_with", [])],
        thresholds={find(rule).id: case.get("thresholds", {})},
    )


@pytest.mark.parametrize(("rule", "case"), load_cases())
def test_case(rule, case):
    advice, expect = judged(rule, case), case["expect"]
    recommended = [one for one in advice.recommendations if one.rule == rule]
    silent = [one for one in advice.no_recommendation if one.rule == rule]
    if "nothing" in expect:
        assert recommended == []
        assert expect["nothing"] in silent[0].why
        return
    assert len(recommended) == expect.get("count", 1), silent
    found = recommended[0]
    for key in ("recommended", "current"):
        got = getattr(found, key)
        wanted = plain(expect.get(key, {}))
        assert {name: got[name] for name in wanted} == wanted
    if "target" in expect:
        assert {k: v for k, v in found.target.model_dump().items() if k in expect["target"]} == expect[
            "target"
        ]
    for key in ("severity", "apply"):
        assert getattr(found, key) == expect.get(key, getattr(found, key))
    if "confidence" in expect:
        assert found.confidence == pytest.approx(expect["confidence"])
    why = found.direction.why_no_number if found.direction else ""
    assert expect.get("reason", "") in f"{found.reason} {why}"
    assert any(expect.get("apply_part", "") in line for line in ["", *found.apply])
    if "expected" in expect:
        wanted = expect["expected"]
        got = None if found.expected is None or wanted is None else found.expected.model_dump()
        if wanted is None:
            assert found.gain is None
        elif "direction" in wanted:
            assert found.direction is not None
            assert found.direction.direction == wanted["direction"]
            assert wanted.get("why", "") in why
        else:
            tolerance = expect.get("tolerance", 1e-3)
            assert {k: got[k] for k in wanted} == pytest.approx(wanted, rel=tolerance)


@pytest.mark.parametrize("rule", [rule for rule, pair in PAIRS.items() if "hand_made" in pair])
def test_a_rule_survives_its_advice_in_hand_made_profiles(rule):
    cases = yaml.load((CASES / f"{rule}.yaml").read_text(), yaml.CSafeLoader)
    before, after = (judged(rule, cases[name]) for name in PAIRS[rule]["hand_made"])
    assert rule in {entry.rule for entry in before.recommendations}
    assert rule not in {entry.rule for entry in after.recommendations}
    assert next(entry.why for entry in after.no_recommendation if entry.rule == rule)
