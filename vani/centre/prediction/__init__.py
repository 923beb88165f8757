"""Predictions from a history of runs."""
