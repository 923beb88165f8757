"""Recorder traces written and decoded without Vani's code, for tests and benchmarks."""
