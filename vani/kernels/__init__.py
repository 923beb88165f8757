"""Hot loops in C, called through ctypes on numpy arrays.

A kernel is declared once, in its C source, from which `library.call` reads its parameters. Each has equivalent numpy
code next to its call, as fallback and as test oracle. A kernel checks every count before its loop and declines input
that it does not support; then, and without a compiled file, numpy does the work, so only numpy's code raises errors.
"""
