"""Sphinx extension: makes the lists of an index page the navigation of the site.

Readers of the code host and of the site follow the same lists, and the build fails if no list names a page. The
headings of the root page become the captions of the sidebar; links above its first heading only help new readers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)\.(?:md|rst)(?:#[^)]*)?\)")


def groups(text: str, page: str) -> dict[str, list[str]]:
    """Pages to which an index links, each once, by the second-level heading above; "" is above the first.

    `page` is the name of the index ("docs/index"), and pages have names like it. Links above the first heading
    count only if no heading contains them.
    """
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    listed: dict[str, list[str]] = {}
    seen = {page}
    for section in [*sections, f"\n{first}"]:
        caption, _, body = section.partition("\n")
        for link in _LINK.findall(body):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
            if name not in seen:
                seen.add(name)
                listed.setdefault(caption.strip(), []).append(name)
    return listed


def _toctree(pages: Iterable[str], caption: str) -> str:
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n" + "".join(f"/{page}\n" for page in pages) + "```\n"


def _append(app: Sphinx, page: str, source: list[str]) -> None:
    if page not in app.config.navigation_indexes:
        return
    root = page == app.config.root_doc
    listed = groups(source[0], page)
    if root:
        source[0] += "".join(_toctree(pages, caption) for caption, pages in listed.items())
    else:
        # An index in a folder lists the pages there; other pages belong elsewhere.
        folder = posixpath.dirname(page) + "/"
        source[0] += _toctree((n for pages in listed.values() for n in pages if n.startswith(folder)), "")


def _front_door(app: Sphinx, error: Exception | None) -> None:
    """Make index.html at the top of a site lead to the root page, which may be deeper."""
    if error is None and app.builder.format == "html" and app.config.root_doc != "index":
        target = f"{app.config.root_doc}.html"
        page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
        page += f'<title>{app.config.project}</title><a href="{target}">{app.config.project}</a>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Names of index pages.
    app.add_config_value("navigation_indexes", [], "env", [list])
    app.connect("source-read", _append)
    app.connect("build-finished", _front_door)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
