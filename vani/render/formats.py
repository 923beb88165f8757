"""The formats in which a document is written, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import cast

__all__ = ["Formats"]


class Formats:
    """The formats of one document: a module of its folder each, loaded when the format is asked for.

    A module `<name>.py` has one function `render(document, ...)`, which returns the text. What it needs beside the
    document, it takes by name; what it does not need, it lets go by (`**_: object`).
    """

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = tuple(names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def render(self, name: str, document: object, **more: object) -> str:
        """Write `document` in the format `name`.

        Raises
        ------
        KeyError
            There is no such format.
        """
        if name not in self._names:
            raise KeyError(name)
        return cast("str", import_module(f"{self._folder}.{name}").render(document, **more))
