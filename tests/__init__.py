"""What holds; `tests.traces` is a package that benchmarks and examples import, too."""
