"""Sockets of Dask's clusters are collected with the test that opened them."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def dask_sockets_are_collected() -> Iterator[None]:
    """Distributed closes some sockets only when they are garbage, which would fail whatever test runs then."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
