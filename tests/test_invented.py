"""The number of inputs that tests invent."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("options", "collected"), [((), "1 passed, 1 deselected"), (("-m", "slow"), "2 passed")]
)
@pytest.mark.slow
def test_slow_tests_include_marked_ones_and_those_with_invented_inputs(
    options, collected, tmp_path
):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "invented.py").write_text((ROOT / "tests" / "invented.py").read_text())
    (tmp_path / "test_one.py").write_text(
        "import pytest\nfrom hypothesis import given, settings, strategies\nfrom invented import examples\n"
        "@pytest.mark.slow\ndef test_marked(): pass\n"
        "@given(strategies.booleans())\n"
        f"def test_invented(_): assert examples(60) == {60 if options else 19}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, *options, "test_one.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert collected in done.stdout, done.stdout + done.stderr
