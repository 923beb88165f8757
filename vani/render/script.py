"""Advice as a shell script that shows, applies and undoes changes that are possible outside a job.

The script's contents come from traces, so every word of a command is quoted again. A line that is not a plain
layout command of `lfs` or of a `Family` is never run, but printed for the job script. No text can end a
comment early.
"""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Final

from vani.errors import one_line
from vani.render.wording import measured_gain
from vani.schema.advice import Advice
from vani.schema.settings import PathLike
from vani.schema.tuned import Tuned
from vani.systems.layout_commands import FAMILIES, family_of

TEMPLATE: Final = Path(__file__).with_name("apply.sh")
"""The script without commands, with names in their places."""
_PLACES: Final = re.compile(r"MAKER|  : (?:STEPS|TAKE_BACK|JOB)")

# Words in the form that shlex.quote writes, without anything that a shell would expand.
_WORD: Final = r"""(?:[A-Za-z0-9_@%+=:,./-]|'[^']*'|"'")+"""
_PLAIN: Final = re.compile(f"{_WORD}(?: {_WORD})*")

_WIDTH: Final = 100

# Commands of `lfs` that change a layout: subcommand (and option) -> the script's function for it.
_STEPS: Final = {"setstripe": "layout", "migrate": "migrate", "setdirstripe": "directory", "mkdir": "directory"}


def layout_line(layout: str, folder: PathLike) -> str:
    """The command that sets a folder's layout; `lfs setstripe` unless the layout names another program."""
    command = f"lfs setstripe {layout}" if layout.startswith("-") else layout
    return f"{command} {shlex.quote(str(folder))}"


def missing_program(layout: str) -> str | None:
    """The program that sets this layout if it is not installed, else None."""
    program = layout_line(layout, "").split(" ", 1)[0]
    programs = next((family.programs for family in FAMILIES if program in family.programs), (program,))
    return None if any(map(shutil.which, programs)) else program


@dataclass(frozen=True)
class Step:
    """One recommendation or kept setting of a script: its title, the reason, and its shell lines."""

    title: str
    why: str
    apply: Sequence[str]
    is_done: bool = True
    """If False, the lines are only comments."""


def advice_script(advice: Advice, *, version: str) -> str:
    """Write the script of an advice document; recommendations of severity `info` become comments.

    See `render_steps`.
    """
    steps = []
    for item in advice.recommendations:
        measured = f" {measured_gain(item.measured)}." if item.measured is not None else ""
        why = f"({item.severity}): {item.reason}{measured}"
        steps.append(Step(f"{item.rule} {item.name}", why, item.apply, is_done=item.severity != "info"))
    return render_steps(steps, maker=f"vani advise {version} from {one_line(advice.profile.path or 'a profile')}")


def tuned_script(tuned: Tuned) -> str:
    """Write tuned.sh, which applies and undoes the kept settings; see `render_steps`."""
    steps = (
        Step(f"{setting.rule} {setting.name}", f"(measured): {setting.reason}", setting.apply)
        for setting in tuned.settings
    )
    return render_steps(steps, maker=f"vani tune {tuned.version} on {tuned.host}", name="tuned.sh")


def render_steps(recommended: Iterable[Step], *, maker: str, name: str = "apply.sh") -> str:
    """Write the script `name`.

    The text is POSIX sh without control characters other than line ends. The same steps give the same text.
    """
    steps: list[str] = []
    calls: list[str] = []
    job: list[str] = []
    needed: dict[str, None] = {}
    for step in recommended:
        why = one_line(f"{step.title} {step.why}")
        about = ["", *map(_comment, wrap(why, _WIDTH, break_long_words=False, break_on_hyphens=False))]
        lines = list(_lines(step.apply))
        if not step.is_done:
            steps += [*about, *(_comment(f"info, so not done: {line}") for line in step.apply)] if lines else []
            continue
        done = [call for _, call in lines if call is not None]
        steps += about if done else []
        for programs, function, (path, *words) in done:
            calls.append(shlex.join([function, str(len(calls) + 1), path, *words]))
            steps.append(calls[-1])
            needed.setdefault(f"need {programs}")
        later = [line for line, call in lines if call is None]
        if later:
            job += [*about, *(f"say {shlex.quote(one_line(line))}" for line in ["", _comment(step.title), *later])]
    bodies = {
        "MAKER": one_line(maker),
        "  : STEPS": _body([*needed, *steps]),
        "  : TAKE_BACK": _body([*needed, *reversed(calls)]),
        "  : JOB": _body(job),
    }
    template = TEMPLATE.read_text(encoding="utf-8").replace("apply.sh", name)
    return _PLACES.sub(lambda place: bodies[place[0]], template)


def lasting_commands(apply: Sequence[str]) -> list[list[str]]:
    """Words of the commands in a step's lines that the script runs itself; the last word is the path."""
    return [plain_words(line) or [] for line, call in _lines(apply) if call is not None]


def plain_words(line: str) -> list[str] | None:
    """The words of a command that a shell would not expand; None for anything else, or with control characters."""
    return shlex.split(line) if line.isprintable() and _PLAIN.fullmatch(line) else None


def _lines(apply: Sequence[str]) -> Iterator[tuple[str, tuple[str, str, list[str]] | None]]:
    """Each line with the programs that its command needs, the script's function, and the path and other arguments.

    None for a line that belongs in the job script.
    """
    for line in apply:
        words = plain_words(line) or [""]
        *command, path = words
        call = None
        # The last word must be a path, not something that `lfs` would take for an option.
        if len(command) > 1 and not path.startswith("-"):
            if command[0] == "lfs" and command[1] in _STEPS:
                call = "lfs", _STEPS[command[1]], [path, *words]
            elif known := family_of(command):
                family, values = known
                call = " ".join(family.programs), "attribute", [path, family.kind, *values]
        yield line, call


def _comment(text: str) -> str:
    # A backslash at the end of a comment continues nothing, but shellcheck warns about it.
    return f"# {one_line(text).rstrip(chr(92))}".rstrip()


def _body(lines: Sequence[str]) -> str:
    """The lines of a function, which has at least one command."""
    if all(not line or line.startswith("#") for line in lines):
        lines = [*lines, ":"]
    return "\n".join(f"  {line}" if line else "" for line in lines).lstrip("\n")
