"""Work done by kernels, and the same by numpy alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vani.kernels import library as loader

__all__ = ["needs_kernels", "numpy_alone"]

needs_kernels = pytest.mark.skipif(loader.library() is None, reason="the kernels are not built, or off")


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Within the block there are no kernels."""
    loader.library()
    before = list(loader._known)
    loader._known[:] = [None]
    try:
        yield
    finally:
        loader._known[:] = before
