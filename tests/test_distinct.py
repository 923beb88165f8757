"""The distinct values of integers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.traces.trace_generator import Workload, generate_trace
from vani.columns import distinct

NUMBERS = st.lists(
    st.one_of(
        arrays.arrays(dtype, st.integers(0, 9), elements=st.integers(-3, 3))
        for dtype in (np.int8, np.int32, np.int64)
    ),
    min_size=1,
    max_size=3,
)


@example([np.empty(0, np.int64)])
@example([np.array([2, 1, 2], np.int8), np.array([1 << 40, -(1 << 62)])])
@example([np.array([1, 1, 5]), np.array([0, 5, 9])])
@given(parts=NUMBERS)
def test_distinct_values_agree_with_numpy(parts):
    before = [part.copy() for part in parts]
    found = distinct(*parts)
    wanted = np.unique(np.concatenate(parts))
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()
    assert all(np.array_equal(*both) for both in zip(before, parts, strict=True))


@pytest.mark.parametrize("arguments", [["profile", "trace", "-o", "p.yaml", "-q"], ["convert", "trace", "s"]])
@pytest.mark.slow
def test_a_short_command_loads_no_masked_arrays(arguments, tmp_path):
    generate_trace(tmp_path / "trace", Workload(calls=1000, ranks=2, files=2))
    code = (
        "import sys\n"
        "from vani.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    print('loaded', 'numpy' in sys.modules, 'numpy.ma' in sys.modules, file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert run.stderr.splitlines()[-1] == "loaded True False"
