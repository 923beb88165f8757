"""The compiled kernels, loaded if they can be used."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from typing import NamedTuple

from vani.kernels.build import FOLDER, compiled_file, is_intact, sources

FUNCTION = re.compile(r"^KERNEL vani_(\w+)\((.*?)\)\n\{", re.DOTALL | re.MULTILINE)
"""Name and parameters of a kernel in its source."""


class Loaded(NamedTuple):
    """The shared object, None if numpy does the work, and the reason as text."""

    library: ctypes.CDLL | None
    state: str


@cache
def load() -> Loaded:
    """Load the kernels if they match the current sources, are undamaged, and are not switched off."""
    if os.environ.get("VANI_KERNELS") == "0":
        return Loaded(None, "off (VANI_KERNELS=0)")
    path, reason = compiled_file(FOLDER), ""
    if path is not None and not is_intact(path):
        # The system's loader would map a truncated file, and the process would crash on its first missing page.
        reason = f" ({path.name} is damaged; install Vani again)"
    elif path is not None:
        try:
            library = ctypes.CDLL(str(path.absolute()))
            for source in sources():
                for name, _ in FUNCTION.findall(source.read_text()):
                    getattr(library, f"vani_{name}")
            return Loaded(library, "compiled")
        except (OSError, AttributeError):
            reason = f" ({path.name} does not load on this machine)"
    return Loaded(None, f"none{reason}, numpy does their work")


def state() -> str:
    """Whether kernels are in use, as text for the user."""
    return load().state
