"""Work before and after each job of a batch system. It must be fast, and must never make the job fail.

Modules in this package import only the standard library, so that a prolog that waits for another one loads nothing
else.
"""
