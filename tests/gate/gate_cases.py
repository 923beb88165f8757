"""Small profiles and policies for tests of the gate."""

from __future__ import annotations

import copy
import tempfile
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import vani
from vani.gate.matching import Figures, read_figures
from vani.gate.policy import PolicyChecks, read_policy
from vani.gate.verdict import verdict_on
from vani.schema.check import Check
from vani.schema.document import dumps, loads
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
# A real profile: 16 processes, one app, 6 files, of which 3 are output.
CM1 = GOLDEN / "v3-cm1like-16r.yaml"
TODAY = date(2026, 6, 1)
HEAD = 'schema = "vani.policy/1"\n'


@lru_cache
def _made(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return vani.profile(ROOT / "tests" / "data" / "traces" / name, store=Path(folder)).to_yaml()


def made(name: str = "v3-ckpt-then-restart-8r") -> dict[str, Any]:
    """The tree of a profile made now from a real trace; 40 of its 377 calls are fsync, 132 metadata."""
    return loads(_made(name), Profile).model_dump(by_alias=True)


@lru_cache
def _tree(path: Path) -> dict[str, Any]:
    return Profile.load(path).model_dump(by_alias=True)


def tree(path: Path = CM1) -> dict[str, Any]:
    """A profile's tree, which may be changed."""
    return copy.deepcopy(_tree(path))


def put(node: Any, keys: str, value: Any) -> Any:
    """Set `files.0.io.ops.read` to a value; returns the tree."""
    *way, last = [int(key) if key.isdecimal() else key for key in keys.split(".")]
    below = node
    for key in way:
        below = below[key]
    below[last] = value
    return node


def changed(**values: Any) -> dict[str, Any]:
    """The real profile with other values: `workflow__io__ops__read=5`."""
    found = tree()
    for keys, value in values.items():
        put(found, keys.replace("__", "."), value)
    return found


def figures(content: dict[str, Any] | None = None) -> Figures:
    model = Profile.model_validate(tree() if content is None else content)
    return read_figures(dumps(model).encode(), "profile.yaml", ())


def policy(tmp_path: Path, text: str, name: str = "vani.toml") -> PolicyChecks:
    path = tmp_path / name
    path.write_text(text if text.startswith("schema") else HEAD + text)
    return read_policy(path)


def verdict(
    checks: PolicyChecks,
    profile: dict[str, Any] | list[dict[str, Any]] | None = None,
    baselines: list[dict[str, Any]] | None = None,
    **options: Any,
) -> Check:
    settings = {"today": TODAY, "fail_on": None, "allow_empty": False, "version": "0"} | options
    runs = [figures(one).tree for one in baselines or []]
    checked = [figures(one) for one in (profile if isinstance(profile, list) else [profile])]
    rules = settings.pop("rules", None)
    return verdict_on(checks, checked, runs, [], [] if rules is None else [rules], **settings)


def found(check: Check) -> list[tuple[str, str]]:
    """(status, id) of all judgements."""
    return [(one.status, one.id) for one in check.judgements]
