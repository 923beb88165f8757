"""What CONTRIBUTING says of a measure with an attribute of its own is true: three files, and `--quick` needs no change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "data" / "traces" / "v3-posix-mix-nonmpi"

MEASURE = '''
"""The longest file-system call of each app. Unit: nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.workload.workload import Context, Workload

__all__ = ["LongestCall", "LongestCalls"]


@dataclass(frozen=True)
class LongestCalls:
    duration_ns: NDArray[np.int64]
    """Shape (apps,)."""


class LongestCall:
    name = "longest_call"
    result = LongestCalls
    columns = frozenset({"duration_ns"})

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context.app)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, {"longest": "max"})

    def finish(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> LongestCalls:
        del findings
        return LongestCalls(combined.at(np.arange(len(workload.apps)), "longest"))


class _Collector:
    def __init__(self, app: int) -> None:
        self._app = app
        self._parts: list[IntTable] = []

    def add(self, batch: Batch) -> None:
        app = np.full(len(batch), self._app)
        self._parts.append(group(app, {"longest": batch.duration}, {"longest": "max"}))

    def result(self) -> IntTable:
        return IntTable.merged(self._parts, {"longest": "max"})
'''

# File, what stands there, and what is put before it.
EDITS = [
    (
        "schema/profile/workload.py",
        '    instances: Count = Field(description="traces of this name")\n',
        '    longest_call_s: Seconds | None = Field(default=None, description="its longest call")\n',
    ),
    (
        "analyzers/entities/apps.py",
        "from vani.schema.profile import App,",
        "from vani.analyzers.measures.longest_call import LongestCalls\n",
    ),
    (
        "analyzers/entities/apps.py",
        "    found, notes = [], _nulls(view)\n",
        "    longest = view.measured.of(LongestCalls)\n",
    ),
    (
        "analyzers/entities/apps.py",
        "    for app, name in enumerate(view.workload.apps):\n",
        '    notes |= view.nulls(LongestCalls, "apps.longest_call_s")\n',
    ),
    (
        "analyzers/entities/apps.py",
        "                instances=len(traces),\n",
        "                longest_call_s=None if longest is None else int(longest.duration_ns[app]) / 1e9,\n",
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The sources with a measure that they do not have, and its attribute."""
    place = tmp_path_factory.mktemp("sources")
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("vani", "analyzers", "advisors", "schema", "templates"):
        shutil.copytree(ROOT / folder, place / folder, symlinks=True, ignore=ignored)
    before = {path: path.read_bytes() for path in place.rglob("*.py")}
    (place / "analyzers" / "measures" / "longest_call.py").write_text(MEASURE)
    for name, anchor, line in EDITS:
        path = place / name
        assert path.read_text().count(anchor) == 1, (name, anchor)
        path.write_text(path.read_text().replace(anchor, line + anchor))
    changed = {path for path in place.rglob("*.py") if path.read_bytes() != before.get(path)}
    assert {
        str(path.relative_to(place)) for path in changed if "vani" not in path.relative_to(place).parts
    } == {
        "analyzers/measures/longest_call.py",
        "analyzers/entities/apps.py",
        "schema/profile/workload.py",
    }
    return place


def profiled(copy: Path, out: Path, *options: str) -> dict:
    surroundings = os.environ | {"PYTHONPATH": str(copy), "VANI_CACHE": str(out.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "vani", "profile", str(TRACE), "-o", str(out), "--quiet", *options],
        env=surroundings,
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return yaml.safe_load(out.read_text())


def test_a_measure_with_an_attribute_of_its_own_takes_three_files(copy, tmp_path):
    profile = profiled(copy, tmp_path / "profile.yaml")
    longest = profile["apps"][0]["longest_call_s"]
    assert 0 < longest <= max(call["time_s"] for call in profile["apps"][0]["io"]["calls"])
    assert "apps.longest_call_s" not in profile["provenance"]


def test_quick_needs_no_change_for_it(copy, tmp_path):
    profile = profiled(copy, tmp_path / "quick.yaml", "--quick")
    assert profile["apps"][0]["longest_call_s"] is None
    assert profile["provenance"]["apps.longest_call_s"] == "--quick decodes no calls"
