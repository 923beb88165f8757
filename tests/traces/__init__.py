"""Recorder traces made and decoded by other code than Vani's, for tests and benchmarks."""
