"""The papers behind Vani as plain functions in the papers' own symbols::

    from vani.centre.papers import mckp
    mckp([[(0, 195.7), (1, 77.6)], [(1, 268.4), (8, 5089.9)]], 12)

Arguments are lists or numpy arrays. Units are those of the papers if they give any. Invalid figures raise an
`InputError` with a one-line message.
"""

from .methods import Aiot, Mckp, Tarazu, Xie, XieSamples, aiot, mckp, tarazu, xie, xie_samples
from .tables import VaniTables, vani_profile

__all__ = [
    "Aiot", "Mckp", "Tarazu", "VaniTables", "Xie", "XieSamples", "aiot", "mckp", "tarazu", "vani_profile", "xie",
    "xie_samples",
]  # fmt: skip
