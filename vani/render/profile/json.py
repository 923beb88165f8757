"""A profile as JSON on one line, with the keys and numbers of the YAML: written and read several times as fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pydantic_core import PydanticSerializationError, to_json

from vani.errors import InputError
from vani.garbage import collection_paused
from vani.render.json_text import json_text, unobeyed
from vani.render.profile.plain_trees import plain_trees

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile

__all__ = ["render"]

_AT_ONCE: Final = 200
"""Files that are written together: as many as the cache of a processor holds."""


def render(profile: Profile, **_: object) -> str:
    """Write the whole document.

    Raises
    ------
    InputError
        A measure of a plug-in found a number that is not finite, which JSON has not.
    """
    with collection_paused():
        try:
            (tree,) = plain_trees([profile.model_copy(update={"files": []})])
            values = {"schema": tree.pop("schema_")} | tree
            parts = [
                f'"{key}":'.encode() + (_written(value) if key != "files" else _files(profile.files))
                for key, value in values.items()
            ]
        except ValueError:
            raise InputError(
                "holds a number that is not finite, which JSON has not",
                where="extensions of the profile",
                todo="write YAML, or mend the plug-in that measured it",
            ) from None
        return unobeyed((b"{" + b",".join(parts) + b"}").decode())


def _files(files: Sequence[FileEntity]) -> bytes:
    cuts = range(0, len(files), _AT_ONCE)
    return b"[" + b",".join(_written(plain_trees(files[cut : cut + _AT_ONCE]))[1:-1] for cut in cuts) + b"]"


def _written(tree: object) -> bytes:
    try:
        return to_json(tree)
    except PydanticSerializationError:
        # A name that is no UTF-8.
        return json_text(tree, indent=None).strip().encode()
