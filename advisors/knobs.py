"""Knobs of a recommendation: settings that `vani tune` can try without changing the program.

They are derived from a rule's lines, so that there is no second list of settings.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain

from vani.advisors.rule import Finding, Knob

_HINT_FILE = re.compile(r"printf '%s\\n' (.+) >> romio-hints")
_HINT_VARIABLES = ("export ROMIO_HINTS=", "export MPICH_MPIIO_HINTS=")


def knobs_of(finding: Finding) -> Sequence[Knob]:
    """Knobs that a rule names, or else those that its lines set.

    Empty if a line does something else, or if the lines do not set a recommended hint. Such advice requires a change
    of the program or the job, and the knobs would be only a part of it.
    """
    if finding.knobs is not None:
        return finding.knobs
    lines = [line for line in finding.apply if not line.startswith("#")]
    knobs = [*chain.from_iterable(map(_knob_of, lines))] if all(map(_is_known, lines)) else []
    names = {name for knob in knobs if knob.kind == "hints" for value in knob.values for name in value}
    return [] if names and not names >= set(finding.recommended) else knobs


def _is_known(line: str) -> bool:
    return line.startswith(_HINT_VARIABLES) or any(True for _ in _knob_of(line))


def _knob_of(line: str) -> Iterator[Knob]:
    if match := _HINT_FILE.fullmatch(line):
        hints = dict(word.split(" ", 1) for word in shlex.split(match[1]))
        yield Knob("hints", (hints,))
        return
    words = shlex.split(line)
    # If joining the words does not give the line again, it contains something that a shell would expand.
    if line.startswith(_HINT_VARIABLES) or shlex.join(words) != line:
        return
    if words[:2] == ["lfs", "setstripe"] and len(words) > 3:
        yield Knob("layout", ({"options": shlex.join(words[2:-1])},), folder=words[-1])
    elif words[:2] in (["beegfs-ctl", "--setpattern"], ["daos", "filesystem"]) and len(words) > 3:
        yield Knob("layout", ({"command": shlex.join(words[:-1])},), folder=words[-1])
    elif words[0] == "export" and len(words) == 2 and "=" in words[1]:
        name, _, value = words[1].partition("=")
        yield Knob("environment", ({name: value},))
