"""The interaction database: OSTs for the extents of each file, in Tarazu's form (tables 1, 2, 4, 5).

The library next to it looks files up in an SQLite copy; PostgreSQL stores it for a whole machine.
"""

from vani.centre.placement_library.interactions.csv_text import is_csv, read_csv, write_csv
from vani.centre.placement_library.interactions.interaction import (
    Interaction,
    lustre_objections,
    refuse_contradictions,
)
from vani.centre.placement_library.interactions.keep import read, store

__all__ = [
    "Interaction",
    "is_csv",
    "lustre_objections",
    "read",
    "read_csv",
    "refuse_contradictions",
    "store",
    "write_csv",
]
