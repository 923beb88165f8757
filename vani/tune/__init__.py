"""Tries settings by running a program: what to run next, each run, and the result."""
