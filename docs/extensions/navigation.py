"""Sphinx: the lists of an index page are the navigation of the site.

Readers of the code host and of the site follow the same lists, and a page that no list names fails the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["groups", "setup"]

_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)\.(?:md|rst)(?:#[^)]*)?\)")


def groups(text: str, page: str) -> dict[str, list[str]]:
    """Pages that an index links to, each once, under the heading or the line of text above their list or table.

    `page` is the name of the index ("docs/index"); pages are named like it.
    """
    found: dict[str, list[str]] = {}
    caption, seen = "", {page}
    for line in text.splitlines():
        links = [
            posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in _LINK.findall(line)
        ]
        if not links and (text_line := re.match(r"(?:##+ )?(\w.*)", line)):
            caption = text_line[1].rstrip(":.")
        for link in links:
            if link not in seen:
                seen.add(link)
                found.setdefault(caption, []).append(link)
    return found


def _toctree(pages: Iterable[str], caption: str) -> str:
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n" + "".join(f"/{page}\n" for page in pages) + "```\n"


def _append(app: Sphinx, page: str, source: list[str]) -> None:
    if page not in app.config.navigation_indexes:
        return
    root = page == app.config.root_doc
    found = groups(source[0], page)
    if root:
        named = {name for pages in found.values() for name in pages}
        rest = [name for name in app.config.navigation_rest if name in app.env.found_docs - named]
        if rest:
            found["More"] = rest
        source[0] += "".join(_toctree(pages, caption) for caption, pages in found.items())
    else:
        # Of an index in a folder, the pages there: others have their place elsewhere.
        folder = posixpath.dirname(page) + "/"
        source[0] += _toctree((n for pages in found.values() for n in pages if n.startswith(folder)), "")


def _front_door(app: Sphinx, error: Exception | None) -> None:
    """A site is asked for index.html at its top, and the root page may lie deeper."""
    if error is None and app.builder.format == "html" and app.config.root_doc != "index":
        target = f"{app.config.root_doc}.html"
        page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
        page += f'<title>{app.config.project}</title><a href="{target}">{app.config.project}</a>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    # Names of index pages, and pages that belong to the root where no list of it names them.
    app.add_config_value("navigation_indexes", [], "env", [list])
    app.add_config_value("navigation_rest", [], "env", [list])
    app.connect("source-read", _append)
    app.connect("build-finished", _front_door)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
