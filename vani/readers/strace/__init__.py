"""Logs of strace: system calls as text, a line each."""
