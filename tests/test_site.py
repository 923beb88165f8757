"""The site built by `make site`: no warning, every page is reachable, every public name is described."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

import vani
from vani.advisors.catalogue import rules
from vani.schema.document import document_modules

ROOT = Path(__file__).resolve().parent.parent

# CI builds the site next to the other tests (.ci/run): it takes a twelfth of their total time.
pytestmark = pytest.mark.slow

# Every class and function that they define is on a page, except the names listed here with a reason.
DESCRIBED = [
    "vani",
    "vani.errors",
    "vani.units",
    "vani.systems",
    "vani.calls",
    "vani.readers.trace_reader",
    "vani.readers.open",
    "vani.store.read",
    "vani.analyzers.passes",
    "vani.analyzers.batch",
    "vani.analyzers.workload",
    "vani.analyzers.int_table",
    "vani.analyzers.measurements",
    "vani.advisors.rule",
    "vani.advisors.catalogue",
    *document_modules().values(),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built like `make site`."""
    recipe = re.search(
        r"^site:.*\n\t\S+ (-m sphinx .*) build/site$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert recipe is not None
    assert {"--fail-on-warning", "--nitpicky"} <= set(recipe[1].split())
    place = tmp_path_factory.mktemp("site")
    # Two processes would not be faster, since most of the time is spent reading Python modules.
    done = subprocess.run(
        [sys.executable, *recipe[1].split(), "-d", place / "trees", place / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return place / "html"


@pytest.fixture(scope="module")
def inventory(site: Path) -> dict[str, str]:
    """Where each Python object is described, by its full name."""
    content = (site / "objects.inv").read_bytes()
    # Four lines of text, then compressed lines of name, kind, priority, address and title.
    listed = zlib.decompress(content.split(b"\n", 4)[4]).decode().splitlines()
    found = (line.split(" ", 4) for line in listed)
    return {name: address for name, kind, _, address, _ in found if kind.startswith("py:")}


class Links(HTMLParser):
    """Link targets and loaded addresses of a page, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" and value:
                self.places.add(value)


def test_every_link_inside_the_site_leads_somewhere(site):
    pages = {path: Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 50
    lost = []
    for page, links in pages.items():
        for target in links.targets:
            name, _, place = target.partition("#")
            if re.match(r"[a-z]+:", name) or name.startswith("//"):
                continue
            goal = (page.parent / name.partition("?")[0]).resolve() if name else page
            if not goal.exists() or (place and goal in pages and place not in pages[goal].places):
                lost.append(f"{page.relative_to(site)}: {target}")
    assert lost == []


def test_site_loads_no_external_resources(site):
    loaded = r"<(?:script|img|iframe)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*rel=\"stylesheet\"[^>]*href=\"(?:https?:)?//"
    assert [page.name for page in site.rglob("*.html") if re.search(loaded, page.read_text())] == []


def test_top_of_the_site_links_to_the_index(site):
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


def test_pages_of_the_code_host_are_pages_of_the_site(site):
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    missing = [p for p in pages if not (site / p.relative_to(ROOT)).with_suffix(".html").is_file()]
    assert missing == []
    assert (site / "docs" / "rules" / f"{rules()[0].id}.html").is_file()


def test_every_public_class_and_function_is_described(inventory):
    def described(module: str, name: str) -> bool:
        # A name of `vani` is described there, or where it is defined.
        origin = getattr(importlib.import_module(module), name).__module__
        return bool({f"{module}.{name}", f"{origin}.{name}", f"vani.{name}"} & inventory.keys())

    origins = [
        (value.__module__, name)
        for name in vani.__all__
        if inspect.isroutine(value := getattr(vani, name)) or inspect.isclass(value)
    ]
    names = [
        (module, name)
        for module in DESCRIBED
        for name, value in vars(importlib.import_module(module)).items()
        if (inspect.isroutine(value) or inspect.isclass(value)) and value.__module__ == module and name[0] != "_"
    ]
    assert {f"vani.{name}" for name in ("profile", "advise", "convert", "open_trace")} <= inventory.keys()
    assert [one for one in [*origins, *names] if not described(*one)] == []


def test_a_model_is_shown_with_its_fields(site):
    page = (site / "docs" / "api" / "documents.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "traces array of TraceEntity traces, one entry per trace directory" in text
    assert "model_config" not in text


class Part(BaseModel):
    """A model for the test below."""


Share = Annotated[float, Field(ge=0, le=1, description="share, 0..1")]


class Whole(BaseModel):
    """One field of each kind."""

    schema_: Literal["vani.whole/1"] = Field(alias="schema", description="which `schema`")
    share: Share | None = Field(description="a part of the whole")
    sizes: list[tuple[int, str]]
    parts: dict[str, Part]
    mixed: int | bool | None = Field(default=None, description="either")


def test_fields_are_shown_with_json_types_units_and_links(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    table = importlib.import_module("model_fields").table
    cells = re.findall(r"[*-] - (.*)|^     - (.*)", "\n".join(table(Whole)), re.MULTILINE)
    rows = [first or other for first, other in cells]
    assert [rows[i : i + 3] for i in range(3, len(rows), 3)] == [
        ["``schema``", "``vani.whole/1``", "which ``schema``"],
        ["``share``", "number, share, ≥ 0, ≤ 1 or null", "a part of the whole"],
        ["``sizes``", "array of array [integer; string]", ""],
        ["``parts``", f"object of :class:`~{__name__}.Part`", ""],
        ["``mixed``", "integer or boolean or null", "either"],
    ]


def test_navigation_follows_the_lists_of_an_index(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    groups = importlib.import_module("navigation").groups
    text = """\
# Title

Begin with the [README](../README.md), or with [a page that no heading has](first.md).

## To use it

- [README](../README.md#start): all
- [Rules](rules/README.md) and [README](../README.md) again, [elsewhere](https://example.org/a.md)

## To change it

| page | for |
| --- | --- |
| [API](api/README.md) | [functions](api/functions.rst), a [script](run.py) |

## To explain it

- [Models](models.md)
"""
    assert groups(text, "docs/index") == {
        "To use it": ["README", "docs/rules/README"],
        "To change it": ["docs/api/README", "docs/api/functions"],
        "To explain it": ["docs/models"],
        "": ["docs/first"],
    }
