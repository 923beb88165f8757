"""Hot loops in C, called through ctypes on arrays of numpy.

A kernel is declared once, where it is defined: `library.call` reads its parameters from the source. Each has numpy code
next to its call as fallback and as oracle. A kernel checks every count before its loop and declines input that it was
not written for; then, and where there is no compiled file, numpy decides, so errors have one home.
"""
