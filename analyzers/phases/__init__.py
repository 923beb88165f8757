"""Phases: activity of processes over time, and where a phase begins."""
