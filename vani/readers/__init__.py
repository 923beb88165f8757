"""Trace readers: `open_trace` is the only entry point, and each tracer has its own folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    from vani.readers.open import Workload, open_trace, open_workload

__all__ = ["Workload", "open_trace", "open_workload"]


def __getattr__(name: str) -> Any:
    # Importing one module of a reader does not load all readers.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vani.readers import open as door  # noqa: PLC0415

    return getattr(door, name)
