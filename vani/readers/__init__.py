"""Trace readers: one door, `open_trace`, and one folder per tracer."""
