"""Darshan logs: counters per process and file."""
