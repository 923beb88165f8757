"""A profile as JSON on one line, with the keys of the YAML: written and read several times as fast."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from vani.errors import InputError
from vani.garbage import collection_paused
from vani.render.json_text import json_text
from vani.schema.yaml.write import round_floats

if TYPE_CHECKING:
    from vani.schema.profile import Profile

__all__ = ["render"]


def render(profile: Profile, **_: object) -> str:
    """Write the whole document, with the numbers of the YAML.

    Raises
    ------
    InputError
        A measure of a plug-in found a number that is not finite, which JSON has not.
    """
    with collection_paused():
        tree = profile.model_dump(by_alias=True)
        round_floats(tree)
        try:
            return json_text(tree, indent=None, default=_plain)
        except ValueError:
            raise InputError(
                "holds a number that is not finite, which JSON has not",
                where="extensions of the profile",
                todo="write YAML, or mend the plug-in that measured it",
            ) from None


def _plain(value: object) -> Any:
    """What measures of plug-ins may return besides plain values, as in YAML."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a document cannot hold {type(value).__name__}")
