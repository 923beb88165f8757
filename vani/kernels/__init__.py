"""Hot loops in C, called through ctypes: a module and a C file of its name per kernel.

Each has the numpy code in the room above that calls it as fallback and as oracle. A kernel checks every count before
its loop and declines what it was not written for; then, and where there is no compiled file, numpy decides, so that
errors have one home.
"""
