"""How a program uses the plain file-system calls."""
