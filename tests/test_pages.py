"""All pages together: their place, their length, and that every command and option in them exists.

Pages that the code generates are listed by name, since their length depends on what they describe.
"""

from __future__ import annotations

import importlib
import math
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from generators.rules import WITHOUT_CODE

from vani.advisors.catalogue import rules
from vani.cli.main import commands

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {f"docs/{name}.md" for name in ("accuracy", "glossary", "machines", "profile")}
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
)
PARTS = ["Tutorials", "How-to guides", "Reference", "Explanation", "For contributors"]
MAX_WORDS = 42_000
"""Words of prose, tables, code and output."""

FOREIGN = {
    "docs/benchmarks.md": {"--only", "--calls", "--trace", "--peer-calls", "--peer-input", "--peer-limit"},
    "docs/darshan.md": {"--total", "--perf", "--file"},
    "docs/howto/tune.md": {"--machine"},
    "docs/models.md": {"--forwarding", "--drawn", "--trust"},
    "docs/tracing.md": {"--seccomp-bpf", "--cap-add"},
}
"""Options of other programs by page: benchmarks, Darshan, strace, and Docker."""
OF_SCRIPTS = {"--apply"}
"""Options of the scripts that Vani writes."""


def is_generated(page: str) -> bool:
    return page in GENERATED or page.startswith("docs/rules/") or page == "CHANGELOG.md"


def prose(page: str) -> str:
    """Text of a page without its blocks."""
    return re.sub(r"^```\w*\n.*?^```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_pages_have_at_most_42_000_words():
    words = {
        page: sum(bool(re.search(r"\w", word)) for word in (ROOT / page).read_text().split())
        for page in PAGES
        if not is_generated(page)
    }
    longest = sorted(words.items(), key=lambda item: -item[1])[:5]
    assert sum(words.values()) <= MAX_WORDS, f"shorten; the longest are {longest}"


def test_readme_is_short_and_names_what_make_demo_does_not_install():
    text = (ROOT / "README.md").read_text()
    assert 500 <= sum(bool(re.search(r"\w", word)) for word in text.split()) <= 700
    assert text.count("![") == 1 and text.count("\n**I ") == 3
    assert len(re.findall(r"^- \[", text.partition("## Read on")[2], re.MULTILINE)) == 4
    # A newcomer runs the blocks after `make demo`, and `vani history` after installing what the page says.
    assert text.index("'.[centre]'") < text.index("$ vani history")
    installed = re.search(r"^\.venv/\.run:.*?--editable '\.\[([\w,]+)\]'", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    assert installed and "plot" in installed[1].split(",")


@pytest.mark.parametrize("file", ["Makefile", ".ci/tests-of-versions", "README.md"])
def test_each_extra_that_is_installed_exists(file):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"'\.\[([\w,]+)\]'", (ROOT / file).read_text())
    assert named and {extra for group in named for extra in group.split(",")} <= set(extras)


def test_the_index_lists_every_page_in_one_of_its_parts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    groups = importlib.import_module("navigation").groups
    parts = groups((ROOT / "docs" / "index.md").read_text(), "docs/index")
    parts.pop("", None)
    assert list(parts) == PARTS
    listed = {name for names in parts.values() for name in names} | {"docs/index"}
    # An index in a folder lists the pages there.
    for index in [name for name in listed if name.endswith("/README")]:
        folder = f"{index.rpartition('/')[0]}/"
        inner = groups((ROOT / f"{index}.md").read_text(), index).values()
        listed |= {name for names in inner for name in names if name.startswith(folder)}
    pages = {page.removesuffix(".md") for page in PAGES}
    pages |= {path.relative_to(ROOT).as_posix().removesuffix(".rst") for path in (ROOT / "docs").rglob("*.rst")}
    assert sorted(pages - listed) == []


@cache
def option_names(command: click.Command) -> frozenset[str]:
    options = [option for option in command.params if isinstance(option, click.Option)]
    names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
    return frozenset([*names, "--help", "-h", "--version"])


def command_of(words: list[str]) -> tuple[click.Command, list[str]] | None:
    """The command at the start of a line, and the words after it; None if there is no such command."""
    command: click.Command = commands
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        inner = command.get_command(click.Context(commands), words[0])
        if inner is None:
            return (command, words) if command.invoke_without_command and command is not commands else None
        command, words = inner, words[1:]
    return command, words


def fault(line: str) -> str:
    """The fault of `vani ...`, up to the end of the command; empty if there is none."""
    end = re.search(r"\s(?:--\s|[|;>&)#]|\\$|2>)|[`…]|, (?=then|`)", line + " ")
    text = line[: end.start()] if end else line
    try:
        words = shlex.split(text)[1:]
    except ValueError:
        words = text.split()[1:]
    found = command_of(words)
    if found is None:
        return f"no such command: {text}"
    command, rest = found
    # A word with a blank is a value.
    options = (re.match(r"-{1,2}[a-zA-Z][\w-]*", word) for word in rest if " " not in word)
    wrong = [one[0] for one in options if one and one[0] not in option_names(command)]
    # Single-letter options may be combined.
    wrong = [one for one in wrong if one.startswith("--") or f"-{one[1]}" not in option_names(command)]
    return f"no such option {', '.join(wrong)}: {text}" if wrong else ""


def lines_of(page: str) -> list[str]:
    """Every `vani ...` in a page's code: at the start of a command in a block, or between backticks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    in_blocks = [
        line
        for block in blocks
        for line in re.findall(r"^(?:\$ )?(?:\w+=\S+ )*(vani [a-z-].*)$", block, re.MULTILINE)
        # A line of output that starts this way names a place: `vani: FILE: ...`.
    ]
    spans = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose(page))]
    return [*in_blocks, *(span for span in spans if re.match(r"vani (?:[a-z-]|$)", span))]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_of_a_page_exists(page):
    assert [message for line in lines_of(page) if (message := fault(line)) and not added(page, line)] == []


def added(page: str, line: str) -> bool:
    """Whether a guide adds this command itself, in a copy of the sources."""
    return page == "docs/contributing/command.md" and line.startswith("vani notes")


@cache
def options_of_all() -> frozenset[str]:
    groups: list[click.Command] = [commands]
    names: set[str] = set()
    for command in groups:
        names |= option_names(command)
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = (command.get_command(context, name) for name in command.list_commands(context))
            groups += [one for one in inner if one is not None]
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES)
def test_option_named_alone_on_a_page_belongs_to_a_command(page):
    named = set(re.findall(r"(?<!`)`(--[a-z][\w-]*)", prose(page)))
    assert sorted(named - options_of_all() - OF_SCRIPTS - FOREIGN.get(page, set())) == []


def test_texts_of_the_code_name_commands_and_options_that_exist():
    """Text between backticks in docstrings and messages, which users see as help, advice and errors."""
    faults = []
    for folder in ("vani", "schema", "analyzers", "advisors"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for span in re.findall(r"`(vani [a-z][^`\n{]*)`", path.read_text()):
                if message := fault(span):
                    faults.append(f"{path.relative_to(ROOT)}: {message}")
    assert faults == []




def test_an_invented_option_is_noticed():
    assert fault("vani history add LOGS --db history.sqlite") == "no such option --db: vani history add LOGS --db history.sqlite"
    assert fault("vani histroy add LOGS").startswith("no such command")
    assert fault("vani trace -o t -- srun --export=ALL ./a") == ""
    assert fault("vani advise p.yaml -q -o a.yaml | grep --colour x") == ""


def test_every_extra_that_a_page_installs_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        for names in re.findall(r"vani-io\[([\w,]+)\]", (ROOT / page).read_text()):
            assert set(names.split(",")) <= set(extras), page


def test_example_of_a_rule_has_code_or_a_line_or_a_reason():
    examples = {rule.id: rule.page().sections["Example"] for rule in rules()}
    plain = {rule for rule, text in examples.items() if not re.search(r"^    \S|`[^`]+[ =(/][^`]*`", text, re.MULTILINE)}
    assert plain == set(WITHOUT_CODE)


TUTORIALS = [page for page in PAGES if re.match(r"examples/\d|docs/tour\.md", page)]
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)? ?(?:%|[kMGT]i?B\b|ms\b|us\b)|(?<![\w.])\d+(?:\.\d+| times\b)|\d+,\d{3}")
_FIGURE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?(%|[kMGT]i?B(?:/s)?\b|ms\b|us\b|s\b|min\b|times\b)")
_BITS = {"KiB": 10, "MiB": 20, "GiB": 30}
SOURCES = yaml.safe_load((ROOT / "tests" / "figures.yaml").read_text())
"""Sources of figures, by page, that no output on the page shows."""


def shown_and_text(page: str) -> tuple[str, str]:
    """Blocks of a page, and its text without code and link targets, each on one line."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return " ".join(" ".join(blocks).split()), re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose(page))


@pytest.mark.parametrize("page", TUTORIALS)
def test_figures_in_the_text_of_a_tutorial_appear_in_its_outputs(page):
    """Formerly a text gave 9.2 % below a screen that said 33 %."""
    shown, text = shown_and_text(page)
    assert [figure for figure in _NUMBER.findall(text) if figure not in shown] == []


def spelled(figure: str) -> set[str]:
    """A figure in the spellings of texts, tables and code; a bare number of one or two digits could be any other."""
    number, unit = _FIGURE.fullmatch(figure).groups()
    value = float(number.replace(",", ""))
    forms = {f"{number} {unit}", f"{number}{unit}", f"{number} * {unit}", f"{number} << {_BITS.get(unit, 'x')}"}
    if len(number) > 2:
        forms |= {number, f"{value:g}"}
    if unit == "%":
        forms |= {f"{value / 100:g}", f"{value / 100:.2f}", f"{1 + value / 100:g}"}
    if unit in ("s", "ms"):
        forms.add(f"{value if unit == 's' else value / 1000:.{1 if unit == 's' else 4}f}")
    if decimal := re.match(r"([kMGT])B", unit):
        forms.add(f"{number}e{3 * ' kMGT'.index(decimal[1])}")
    return forms


def value_of(figure: str) -> float:
    number, unit = _FIGURE.fullmatch(figure).groups()
    factor = {"%": 0.01, "ms": 1e-3, "us": 1e-6, "min": 60.0}.get(unit, 1.0)
    if sized := re.match(r"([kMGT])(i?)B", unit):
        factor = (1024.0 if sized[2] else 1000.0) ** (" kMGT".index(sized[1]))
    return float(number.replace(",", "")) * factor


def unfounded(page: str, figure: str, source: str) -> str:
    """The fault of a figure's source; empty if there is none."""
    if source in ("by hand", "paper", "example") or source.startswith("setting of "):
        return ""
    if source.startswith("benchmarks."):
        return "" if (ROOT / f"{source.replace('.', '/')}.py").is_file() else f"{figure}: no {source}"
    if ":" in source:
        module, _, name = source.partition(":")
        value = getattr(importlib.import_module(module), name)
        return "" if math.isclose(value, value_of(figure)) else f"{figure}: {source} is {value}"
    source, _, literal = source.partition("#")
    text = (ROOT / source).read_text() if (ROOT / source).is_file() else ""
    if literal:
        stated = literal in text and any(form in literal for form in (figure.split(maxsplit=1)[0], *spelled(figure)))
        return "" if stated else f"{figure}: not in {source}"
    named = page.rpartition("/")[2] in text
    if named or any(re.search(rf"(?<![\d.]){re.escape(form)}(?![\d.]*\d)", text) for form in spelled(figure)):
        return ""
    return f"{figure}: not in {source}"


def figures_in_text(page: str) -> set[str]:
    """Figures with a unit in a page's text, without tables, that no output on the page shows."""
    shown, text = shown_and_text(page)
    lines = " ".join(" ".join(line for line in text.splitlines() if not line.startswith("|")).split())
    return {" ".join(figure) for figure in _FIGURE.findall(lines)} - {" ".join(figure) for figure in _FIGURE.findall(shown)}


@pytest.mark.parametrize("page", [page for page in PAGES if not is_generated(page) and page != "docs/decisions.md"])
def test_a_figure_in_the_text_of_a_page_is_in_an_output_or_has_a_source(page):
    """Decisions are records of their day, and are left out."""
    sources = SOURCES.get(page, {})
    assert sorted(figures_in_text(page) ^ set(sources)) == [], "see tests/figures.yaml"
    assert [fault for figure, source in sources.items() if (fault := unfounded(page, figure, source))] == []


def test_a_figure_without_its_source_or_with_another_value_is_noticed():
    assert unfounded("docs/store.md", "20 GiB", "vani.store.cache:MAX_BYTES") == ""
    assert unfounded("docs/store.md", "21 GiB", "vani.store.cache:MAX_BYTES").startswith("21 GiB: vani.store.cache:MAX_BYTES is ")
    assert unfounded("docs/models.md", "26 %", "advisors/judge.py") == "26 %: not in advisors/judge.py"
    assert unfounded("docs/models.md", "26 %", "benchmarks.nothing") == "26 %: no benchmarks.nothing"
