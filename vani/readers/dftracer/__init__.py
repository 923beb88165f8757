"""Traces of DFTracer (formerly DLIO Profiler): files of JSON lines, mostly one per process."""
