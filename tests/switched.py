"""Work done with kernels, and the same with numpy alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from vani import kernels

__all__ = ["needs_kernels", "numpy_alone"]

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="the kernels are not built, or off")


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Within the block there are no kernels."""
    with patch.object(kernels, "_functions", dict):
        yield
