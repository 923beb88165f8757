"""The papers behind Vani as plain functions in the papers' own symbols::

    from vani.papers import mckp
    mckp([[(0, 195.7), (1, 77.6)], [(1, 268.4), (8, 5089.9)]], 12)

Arguments are lists or numpy arrays. Units are those of the papers if they give any. Invalid figures raise an
`InputError` with a one-line message.
"""

from vani.papers.io_nodes import Mckp, mckp
from vani.papers.osts import Tarazu, tarazu
from vani.papers.paths import Aiot, aiot
from vani.papers.tables import VaniTables, vani_profile
from vani.papers.write_time import Xie, xie

__all__ = ["Aiot", "Mckp", "Tarazu", "VaniTables", "Xie", "aiot", "mckp", "tarazu", "vani_profile", "xie"]
