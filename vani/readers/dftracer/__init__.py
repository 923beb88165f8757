"""Traces of DFTracer (and of DLIO Profiler, its name before): files of JSON lines, mostly one per process."""
