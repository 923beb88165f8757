"""Rules about plain file-system calls."""
