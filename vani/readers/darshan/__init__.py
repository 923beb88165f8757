"""Logs of Darshan: counters per process and file."""
