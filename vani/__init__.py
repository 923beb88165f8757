"""Vani: storage settings for HPC programs, from a trace of their run.

    profile = vani.profile("traces/ior")
    advice = vani.advise(profile, system="lassen")

A function raises `vani.errors.InputError`, with a one-line message for the user, if it cannot use a trace or a
document.
`__init__.pyi` lists all names; each loads its module on first use, because Dask and Arrow take about a second.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
