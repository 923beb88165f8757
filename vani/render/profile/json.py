"""A profile as JSON on one line, with the keys and numbers of the YAML but several times as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.document_json import document_json

if TYPE_CHECKING:
    from vani.schema.profile import Profile

def render(profile: Profile, **_: object) -> str:
    """Write the whole document; raises InputError if a plug-in's measure returned a number that is not finite."""
    return document_json(profile)
