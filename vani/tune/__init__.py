"""Trying settings by running a program: what to run next, each run, and what the runs show."""
