"""`examples/read_store.py` needs nothing but Vani, and reports missing arguments in one line."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import vani

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "read_store.py"
WITHOUT_EXTRAS = """
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "pandas", "polars"}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
# The script sees the arguments that it sees as `python examples/read_store.py`.
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def shown(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, EXAMPLE, *arguments], capture_output=True, text=True, check=False
    )


def test_example_without_extras_gives_the_answer_of_its_sql(tmp_path):
    store = tmp_path / "calls"
    vani.convert(ROOT / "tests" / "data" / "traces" / "v3-posix-mix-4r", store)
    done = shown(store)
    assert (done.returncode, done.stderr) == (0, "")
    sql = re.search(r"SELECT .*", ast.get_docstring(ast.parse(EXAMPLE.read_text())), re.DOTALL)[0]
    answer = duckdb.sql(sql.replace("STORE", str(store)))
    rows = [answer.columns, *answer.fetchall()]
    assert len(rows) == 6
    assert done.stdout.splitlines() == [" ".join(map(str, row)) for row in rows]


@pytest.mark.parametrize("arguments", [[], ["nowhere"], [ROOT], ["a", "b"]], ids=str)
@pytest.mark.sampled(2)
def test_missing_store_is_reported_with_a_remedy(arguments):
    done = shown(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "usage: python read_store.py STORE, the folder that `vani convert TRACE STORE` wrote\n"
