"""The formats in which a document can be written, by name and by file suffix."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from vani.errors import InputError, nearest
from vani.schema.syntax.json_writer import json_text

Written = TypeVar("Written", str, bytes)

_WHOLE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "json": lambda document: json_text(document.model_dump(by_alias=True)),
    "yaml": lambda document: str(document.to_yaml()),
}
"""Writers of the document itself, with the keys of its schema."""


class Formats(Generic[Written]):
    """The formats of one document, each a module in its folder that is loaded on demand.

    A module `<name>.py` has one function `render(document, ...)` that returns text or bytes. It takes further
    arguments by name, and ignores those it does not need (`**_: object`).

    Parameters
    ----------
    folder
        Package that contains the modules.
    names
        Names of the formats; as a mapping, with their file suffixes.
    what
        Name of the document in messages.
    whole
        Formats of the document itself, without a module.
    """

    def __init__(
        self,
        folder: str,
        names: Sequence[str] | Mapping[str, Sequence[str]],
        *,
        what: str = "",
        whole: Collection[str] = (),
    ) -> None:
        self._folder = folder
        self._names = tuple(names)
        self._what = what
        self._whole = frozenset(whole)
        ends = names if isinstance(names, Mapping) else {name: (f".{name}",) for name in names}
        self._by_suffix = {suffix: name for name, suffixes in ends.items() for suffix in suffixes}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def render(self, name: str, document: object, **more: object) -> Written:
        """Write `document` in the format `name`.

        Raises
        ------
        InputError
            There is no such format.
        """
        self.check(name)
        if name in self._whole:
            return cast("Written", _WHOLE[name](document))
        return cast("Written", import_module(f"{self._folder}.{name}").render(document, **more))

    def check(self, name: str) -> None:
        """Raise InputError if the format does not exist, before any work for it begins."""
        if name not in self._names:
            raise InputError(f"unknown format {name!r}", todo=f"known are {', '.join(self._names)}")

    def of_file(self, path: Path) -> str | None:
        """The format that a file's suffix indicates; None for other suffixes."""
        return self._by_suffix.get(path.suffix.lower())

    def needed_for(self, path: Path) -> str:
        """The format that a file's suffix indicates, if no option names one.

        Raises
        ------
        InputError
            The suffix belongs to no format.
        """
        name = self.of_file(path)
        if name is not None:
            return name
        suffix, known = path.suffix.lower(), list(self._by_suffix)
        raise InputError(
            f"unknown {self._what} format {suffix!r}" if suffix else f"no {self._what} format is named",
            where=path,
            todo=nearest(suffix, known, f"use a name that ends in {', '.join(known[:-1])} or {known[-1]}"),
        )
