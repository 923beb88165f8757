"""Sphinx: the lists of an index page are the navigation of the site.

Readers of the code host and of the site follow the same lists, and a page that no list names fails the build. The
headings of the root page are the captions of the sidebar; links above its first heading only help readers to begin.
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
    """Pages that an index links to, each once, by the heading of the second level above; "" is above the first.

    `page` is the name of the index ("docs/index"); pages are named like it. Links above the first heading count only
    where no heading has them.
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
        # Of an index in a folder, the pages there: others have their place elsewhere.
        folder = posixpath.dirname(page) + "/"
        source[0] += _toctree((n for pages in listed.values() for n in pages if n.startswith(folder)), "")


def _front_door(app: Sphinx, error: Exception | None) -> None:
    """Browsers open index.html at the top of a site; the root page may be deeper."""
    if error is None and app.builder.format == "html" and app.config.root_doc != "index":
        target = f"{app.config.root_doc}.html"
        page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
        page += f'<title>{app.config.project}</title><a href="{target}">{app.config.project}</a>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    # Names of index pages.
    app.add_config_value("navigation_indexes", [], "env", [list])
    app.connect("source-read", _append)
    app.connect("build-finished", _front_door)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
