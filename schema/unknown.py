"""Why a way of making a profile leaves attributes null, in the words of `provenance`, and how to get them.

Sources state these reasons; readers of a profile look up the remedy.
"""

from typing import Final

from vani.schema.dataset_facts import MAX_LOOKED_AT

NO_TIMES: Final = "--quick does not read time stamps"
NO_ORDER: Final = "--quick counts calls and does not follow their order"
NO_CALLERS: Final = (
    "--quick does not read time stamps, which alone show which call made which where no call depth is stored"
)
NO_NAMES: Final = (
    "--quick does not follow the order of calls, which distinguishes the names of a renamed file"
)
NO_RANKING: Final = "--quick does not know which of the file systems in use has most I/O time"
NO_CHOICE: Final = (
    f"--quick does not know the I/O time by which {MAX_LOOKED_AT:,} files are chosen to be examined"
)
NO_CALLS: Final = "--quick decodes no calls"

_SUPPLY: Final = dict.fromkeys(
    (NO_TIMES, NO_ORDER, NO_CALLERS, NO_NAMES, NO_RANKING, NO_CHOICE, NO_CALLS),
    "make the profile without --quick",
)


def supply_of(why: str | None) -> str | None:
    """How to obtain attributes that are null for this reason; None for any other reason."""
    return None if why is None else _SUPPLY.get(why)
