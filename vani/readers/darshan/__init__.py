"""Logs of Darshan: counters per process and file, which PyDarshan reads."""
