"""Specifications of Vani's behaviour; benchmarks and examples also import the package `tests.traces`."""
