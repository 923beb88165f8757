"""strace logs: system calls as text, one per line."""
