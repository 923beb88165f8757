"""Arrow arrays from numpy and back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vani.columns import narrow, scalar, small_table, texts, to_arrow, to_numpy

TRACES = Path(__file__).parent / "data" / "traces"
KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint32, np.float64]


ends_of_types = st.builds(
    lambda bits, more: (1 << bits) + more, st.sampled_from([7, 15, 31]), st.integers(-2, 1)
)


@given(
    st.lists(
        ends_of_types | ends_of_types.map(lambda end: -end) | st.integers(-(1 << 63), (1 << 63) - 1),
        max_size=5,
    )
)
def test_a_narrow_column_is_the_same_in_no_larger_type_than_needed(numbers):
    values = np.array(numbers, np.int64)
    found = narrow(values)
    assert found.tolist() == values.tolist()
    if len(values) and found.dtype != np.int8:
        half = np.iinfo(f"i{found.dtype.itemsize // 2}")
        assert values.min() < half.min or values.max() > half.max


@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: arrays(
            kind, st.integers(0, 40), elements={"allow_nan": False} if kind is np.float64 else None
        )
    ),
    st.data(),
)
def test_columns_agree_with_pyarrow(values, data):
    null = data.draw(arrays(np.bool_, len(values)))
    assert to_arrow(values).equals(pa.array(values))
    assert to_arrow(values, null).equals(pa.array(values, mask=null))
    skipped = data.draw(st.integers(0, len(values)))
    back = to_numpy(to_arrow(values, null).slice(skipped), 7)
    assert (
        back.tolist()
        == [7 if n else v for v, n in zip(values.tolist(), null.tolist(), strict=True)][skipped:]
    )


@given(arrays(np.bool_, st.integers(0, 40)), st.integers(0, 5))
def test_truth_values(values, skipped):
    assert to_numpy(pa.array(values).slice(skipped)).tolist() == values[skipped:].tolist()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts(values):
    assert texts(values).equals(pa.array(values, pa.string()))


def test_half_a_surrogate_pair_is_not_text():
    with pytest.raises(UnicodeEncodeError):
        texts(["\ud800"])


def test_scalars_and_small_tables():
    assert scalar("a").as_py() == "a" and scalar(3).as_py() == 3
    schema = pa.schema([("n", pa.int16()), ("path", pa.string())])
    assert small_table([(1, 2), ("a", "b")], schema).to_pylist() == [
        {"n": 1, "path": "a"},
        {"n": 2, "path": "b"},
    ]
    assert small_table([(), ()], schema).num_rows == 0


@pytest.mark.slow
def test_profiling_does_not_load_an_installed_pandas(tmp_path):
    """Arrow's own conversions would load it, which takes longer than reading a small trace."""
    code = (
        "import sys; import vani; "
        f"vani.profile({str(TRACES / 'v3-cm1like-16r')!r}, store={str(tmp_path)!r}); "
        "print([m for m in ('pandas', 'dask', 'pyarrow.dataset', 'networkx', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
