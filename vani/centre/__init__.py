"""A history of runs, plans for jobs and predictions, for a computing centre.

Its functions load on first use; `__init__.pyi` lists them::

    from vani import centre
    centre.plan_place("jobs.yaml", "snapshot.yaml")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
