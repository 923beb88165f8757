"""Predictions of the files that a run will create: their number, processes and sizes."""
