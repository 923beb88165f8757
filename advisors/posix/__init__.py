"""Use of the plain file-system calls."""
