"""Trace readers: one door, `open_trace`, and one folder per tracer."""

from __future__ import annotations

from vani.readers.open import Workload, open_trace, open_workload

__all__ = ["Workload", "open_trace", "open_workload"]
