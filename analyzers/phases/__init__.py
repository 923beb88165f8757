"""Phases: activity of processes over time, and the starts of phases."""
