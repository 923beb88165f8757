"""Formats by name, the only writer of JSON, and where garbage collector and allocator are set."""

from __future__ import annotations

import gc
import json
from importlib import import_module
from pathlib import Path

import pytest

import vani
from vani import plot
from vani.cli.main import commands
from vani.errors import InputError
from vani.render import formats
from vani.schema.document import collection_paused
from vani.schema.syntax.json_text import json_text

ROOT = Path(__file__).parents[2]
DOCUMENTS = {name: found for name, found in vars(formats).items() if isinstance(found, formats.Formats)}
SOURCES = [path for folder in ("vani", "schema", "advisors") for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_format_names_an_existing_function(document):
    for name, writer in DOCUMENTS[document]._writers.items():
        module, _, function = (writer or f"{formats.__name__}:{name}").partition(":")
        assert writer is None or callable(getattr(import_module(module), function))
        assert writer is not None or name in formats._DOCUMENT


def test_unlisted_format_is_refused():
    with pytest.raises(InputError, match=r"^unknown format 'judgement'; known are text, json, sarif, "):
        formats.CHECK.render("judgement", None)


def test_library_refuses_a_format_before_working(tmp_path):
    # Formerly every name except two gave an HTML page.
    with pytest.raises(InputError, match=r"^unknown format 'pdf'; known are html, markdown, txt$"):
        vani.report(tmp_path / "none.yaml", format="pdf")
    with pytest.raises(InputError, match=r"^unknown format 'jpg'; known are svg, png, pdf, json$"):
        plot("ops", tmp_path / "none.yaml", format="jpg")


def test_file_name_reveals_recognisable_formats():
    images = formats.IMAGE
    assert [formats.REPORT.of_file(Path(f"r{end}")) for end in (".htm", ".HTML", ".md", ".txt", ".log", "")] == [
        "html", "html", "markdown", "txt", None, None,
    ]  # fmt: skip
    assert images.needed_for(Path("a.b.PNG")) == "png"
    for end, line in (
        (".jpg", r"^x\.jpg: unknown image format '\.jpg'; did you mean '\.png'\?$"),
        ("", r"^x: no image format is named; use a name that ends in \.svg, \.png, \.pdf or \.json$"),
    ):
        with pytest.raises(InputError, match=line):
            images.needed_for(Path(f"x{end}"))


@pytest.mark.parametrize("command", ["advise", "check", "diff", "report"])
def test_command_offers_the_existing_formats(command):
    (option,) = [one for one in commands.get_command(None, command).params if "--format" in one.opts]
    documents = {"advise": ("ADVICE",), "diff": ("DIFF", "RUNS")}.get(command, (command.upper(),))
    assert list(option.type.choices) == list(dict.fromkeys(name for one in documents for name in DOCUMENTS[one]))


def test_json_output_has_a_single_writer():
    # Formerly five calls of `json.dumps`, two of which let characters pass that a terminal interprets.
    found = {path.name for path in (ROOT / "vani/render").rglob("*.py") if "json.dumps(" in path.read_text()}
    # What goes to a child process through a pipe is no output.
    assert found <= {"drawing.py"}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
def test_no_form_of_json_moves_the_cursor(ascii_only, indent):
    tree = {"a": ["x\x7f\x9b\u202e\udcff", 1]}
    text = json_text(tree, indent=indent, ascii_only=ascii_only)
    assert not set(text) & set("\x7f\x9b\u202e\udcff")
    assert json.loads(text)["a"][0][:3] == "x\x7f\x9b"
    assert ascii_only <= text.isascii()
    assert (" " in text) == (indent is not None)


def test_garbage_collector_is_configured_in_one_place():
    # Formerly two commands switched it on again for callers that had switched it off.
    assert {path.name for path in SOURCES if "gc.disable(" in path.read_text()} == {"document.py"}


def test_garbage_collector_is_restored_after_a_pause():
    was = gc.isenabled()
    try:
        for before in (True, False):
            (gc.enable if before else gc.disable)()
            with collection_paused():
                assert not gc.isenabled()
            assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()
