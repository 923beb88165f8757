"""The formats of each document, by name and by file suffix.

A format is a function `to_<format>(document, ...)` that returns text or bytes. It takes further arguments by name, and
ignores those it does not need (`**_: object`). Its line is in the table of its document below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from vani.errors import InputError, nearest
from vani.schema.syntax.json_text import json_text

Written = TypeVar("Written")

_DOCUMENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "json": lambda document: json_text(document.model_dump(by_alias=True)),
    "yaml": lambda document: str(document.to_yaml()),
}
"""Writers of the document itself, with the keys of its schema."""


class Formats(Generic[Written]):
    """The formats of one document; their modules are loaded on demand.

    Parameters
    ----------
    writers
        `module:function` of each format, by name; None writes the document itself.
    suffixes
        File suffixes of formats whose only suffix is not their name.
    what
        Name of the document in messages.
    """

    def __init__(
        self,
        writers: Mapping[str, str | None],
        suffixes: Mapping[str, Sequence[str]] | None = None,
        *,
        what: str = "",
    ) -> None:
        self._writers = writers
        self._what = what
        ends = {name: (f".{name}",) for name in writers} | dict(suffixes or {})
        self._by_suffix = {suffix: name for name in writers for suffix in ends[name]}

    @classmethod
    def in_folder(
        cls, folder: str, names: Mapping[str, Sequence[str]], *, whole: Collection[str] = ()
    ) -> Formats[Written]:
        """Formats with file suffixes, each a module `<name>.py` of a package with a function `render`."""
        return cls({name: None if name in whole else f"{folder}.{name}:render" for name in names}, names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)

    def render(self, name: str, document: object, **more: object) -> Written:
        """Write `document` in the format `name`.

        Raises
        ------
        InputError
            There is no such format.
        """
        self.check(name)
        writer = self._writers[name]
        if writer is None:
            return cast("Written", _DOCUMENT[name](document))
        module, _, function = writer.partition(":")
        return cast("Written", getattr(import_module(module), function)(document, **more))

    def check(self, name: str) -> None:
        """Raise InputError if the format does not exist, before any work for it begins."""
        if name not in self._writers:
            raise InputError(f"unknown format {name!r}", todo=f"known are {', '.join(self._writers)}")

    def chosen(self, name: str | None, output: Path | None, default: str) -> str:
        """The format that an option names, else that of the output's suffix, else the default."""
        return name or (self.of_file(output) if output is not None else None) or default

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


PROFILE: Final[Formats[str]] = Formats(
    {"yaml": None, "json": "vani.schema.document:document_json"}, {"yaml": (".yaml", ".yml")}
)
GRAPH: Final[Formats[str]] = Formats(
    {"dot": "vani.render.table:graph_to_dot", "json": "vani.render.table:graph_to_json"}, what="graph"
)
"""Formats of a profile's dependency graph."""
ADVICE: Final[Formats[str]] = Formats(
    {
        "text": "vani.render.screen:to_text",
        "yaml": None,
        "json": None,
        "markdown": "vani.render.advice:to_markdown",
        "sarif": "vani.render.code_hosts:advice_to_sarif",
        "csv": "vani.render.advice:to_csv",
    }
)
"""Each writer receives Vani's `version`, and in `pages` the texts of `vani explain` by rule id."""
CHECK: Final[Formats[str]] = Formats(
    {
        "text": "vani.render.check:to_text",
        "json": None,
        "sarif": "vani.render.code_hosts:to_sarif",
        "junit": "vani.render.code_hosts:to_junit",
        "github": "vani.render.code_hosts:to_github",
        "gitlab": "vani.render.code_hosts:to_gitlab",
    }
)
"""Each writer receives Vani's `version`."""
OF_CODE_HOSTS: Final = ("sarif", "junit", "github", "gitlab")
"""Formats of checks with paths relative to the repository, wherever the command was run; see `in_repository`."""
DIFF: Final[Formats[str]] = Formats(
    {
        "text": "vani.render.diff:to_text",
        "markdown": "vani.render.diff:to_markdown",
        "json": "vani.render.diff:to_json",
    }
)
"""Each writer takes `everything`: whether to show differences within the tolerance."""
RUNS: Final[Formats[str | bytes]] = Formats(
    {
        "text": "vani.render.table:runs_to_text",
        "csv": "vani.render.table:runs_to_csv",
        "json": None,
        "parquet": "vani.render.table:runs_to_parquet",
    },
    {"text": (".txt",)},
    what="table",
)
"""Formats of a table of many runs."""
RULES: Final[Formats[str]] = Formats(
    {"text": "vani.render.table:rules_to_text", "json": "vani.render.table:rules_to_json"}
)
"""Each writer receives a mapping per rule: `id`, `name`, `family`, `finding` and `thresholds`."""
REPORT: Final[Formats[str]] = Formats(
    {
        "html": "vani.render.report.page:to_html",
        "markdown": "vani.render.report.markdown:to_markdown",
        "txt": "vani.render.report.text:to_text",
    },
    {"html": (".html", ".htm"), "markdown": (".md", ".markdown")},
)
WITH_PLOTS: Final = ("html",)
"""Formats of a report that show plots, some of which need the decoded calls."""
IMAGE: Final[Formats[bytes]] = Formats(
    {
        "svg": "vani.render.plots.drawing:to_svg",
        "png": "vani.render.plots.drawing:to_png",
        "pdf": "vani.render.plots.drawing:to_pdf",
        "json": "vani.render.plots.drawing:to_json",
    },
    what="image",
)
"""Each writer takes `width_mm`, the width on paper, and the `style`; png also `dpi`."""
