"""Measures of calls, one per module."""
