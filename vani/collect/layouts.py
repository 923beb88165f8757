"""Layouts of new files in a folder, as in a `Setting`: the command that sets one, and whether a folder has it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from vani.collect.lustre import parse_layout
from vani.collect.probe import NoAnswer, ask
from vani.schema.settings import PathLike
from vani.units import parse_bytes

_PROGRAMS = {"lfs": ("lfs",), "beegfs-ctl": ("beegfs-ctl", "beegfs"), "daos": ("daos",)}


def layout_line(layout: str, folder: PathLike) -> str:
    """The command that sets a folder's layout; `lfs setstripe` unless the layout names another program."""
    command = f"lfs setstripe {layout}" if layout.startswith("-") else layout
    return f"{command} {shlex.quote(str(folder))}"


def missing_program(layout: str) -> str | None:
    """The program that sets this layout if it is not installed, else None."""
    program = layout_line(layout, "").split(" ", 1)[0]
    return None if any(map(shutil.which, _PROGRAMS.get(program, (program,)))) else program


def layout_problem(folder: Path, layout: str) -> tuple[str, bool | None] | None:
    """Compare the layout that a folder gives new files with the requested one.

    Returns None if they agree. Otherwise returns a sentence, with False if they differ and None if that is unknown.
    """
    words = shlex.split(layout)
    if words[0] == "beegfs-ctl":
        return _pattern_problem(folder, layout)
    if words[0] == "daos":
        return _class_problem(folder, words[words.index("--oclass") + 1])
    return _stripes_problem(folder, words)


def _pattern_problem(folder: Path, layout: str) -> tuple[str, bool | None] | None:
    retro = ["beegfs", "entry", "info", "--retro", "--verbose", str(folder)]
    command = ["beegfs-ctl", "--getentryinfo", str(folder)] if shutil.which("beegfs-ctl") else retro
    try:
        printed = ask(command)
    except NoAnswer as error:
        return f"the pattern is unknown ({error})", None
    has = re.search(r"targets: desired: *([0-9]+)", printed), re.search(r"Chunksize: *([0-9]+[kKMG]?)", printed)
    if not all(has):
        return f"the pattern is unknown ({' '.join(command[:2])} names none)", None
    now = [match[1].upper() for match in has if match]
    wanted = re.findall(r"=([0-9]+[kKMG]?)", layout.upper())
    if list(map(parse_bytes, now)) == list(map(parse_bytes, wanted)):
        return None
    return f"the pattern was not applied (it has {now[0]} targets, chunks of {now[1]})", False


def _class_problem(folder: Path, wanted: str) -> tuple[str, bool | None] | None:
    try:
        printed = ask(["daos", "filesystem", "get-attr", "--path", str(folder)])
    except NoAnswer as error:
        return f"the object class is not known ({error})", None
    match = re.search(r"Object Class = *(\w+)", printed)
    if match is None:
        return "the object class is not known (daos filesystem get-attr names none)", None
    return None if match[1] == wanted else (f"the object class was not applied (it is {match[1]})", False)


def _stripes_problem(folder: Path, options: Sequence[str]) -> tuple[str, bool | None] | None:
    try:
        printed = ask(["lfs", "getstripe", "-d", str(folder)])
    except NoAnswer as error:
        return f"the layout is not known ({error})", None
    layout = parse_layout(printed)
    if not layout:
        return "the layout is not known (lfs getstripe -d names none)", None
    wanted = _requested(options)
    composite = str(layout.get("layout", ""))
    have: dict[str, object] = {"components": composite.count("-E ")} if composite else dict(layout)
    wrong = [
        f"{key} {have[key]}, not {value}"
        for key, value in wanted.items()
        if key in have and have[key] != value
    ]
    missing = [key for key in wanted if key not in have]
    if "components" in missing or ("components" in have and "components" not in wanted):
        return f"the layout was not applied (lfs getstripe -d shows {composite or layout})", False
    if wrong:
        return f"the layout was not applied (lfs getstripe -d shows {', '.join(wrong)})", False
    return (f"lfs getstripe -d does not show {', '.join(missing)}", None) if missing else None


def _requested(options: Sequence[str]) -> dict[str, object]:
    if "-E" in options:
        return {"components": list(options).count("-E")}
    wanted: dict[str, object] = {}
    for option, value in pairwise(options):
        if option in ("-c", "-C"):
            wanted["stripe_count"] = int(value)
        elif option == "-S":
            wanted["stripe_size"] = parse_bytes(value)
    return wanted
