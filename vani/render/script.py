"""Advice as a shell script that shows, applies and undoes changes that are possible outside a job.

The script's contents come from traces, so every word of a command is quoted again. A line that is not a plain
layout command of `lfs`, `beegfs-ctl` or `daos` is never run, but printed for the job script. No text can end a
comment early.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.wording import measured_gain

if TYPE_CHECKING:
    from vani.schema.advice import Advice
    from vani.schema.tuned import Tuned

# A word in the form that shlex.quote writes, without anything that a shell would expand.
_WORD: Final = re.compile(r"""(?:[A-Za-z0-9_@%+=:,./-]|'[^']*'|"'")+""")

_WIDTH: Final = 100

# Commands of `lfs` that change a layout: subcommand (and option) -> the script's function for it.
_STEPS: Final = {
    "setstripe": "layout",
    "migrate": "migrate",
    "setdirstripe": "directory",
    "mkdir": "directory",
}

# Commands of other file systems that set an attribute of new files in a folder: its kind, with values as
# groups.
_ATTRIBUTES: Final = {
    "pattern": re.compile(r"beegfs-ctl --setpattern --numtargets=([0-9]+) --chunksize=([0-9]+[kKMG]?)"),
    "class": re.compile(r"daos filesystem set-attr --oclass ([A-Z][A-Z0-9_]*) --path"),
}
# Programs for each kind of step; any one of them is enough.
_PROGRAMS: Final = {"pattern": "beegfs-ctl beegfs", "class": "daos"}

_HEAD: Final = r"""#!/bin/sh
# Made by {maker}.
#   sh apply.sh           shows the commands, and does nothing
#   sh apply.sh --apply   does it (as does APPLY=1), and keeps the layouts of before in $VANI_STATE
#   sh apply.sh --undo    brings those back: default layouts of folders, layouts of migrated files
#   sh apply.sh --job     prints what belongs into the job script
# File names are literal, even with special characters:
# shellcheck disable=SC1003,SC2016,SC2088
set -eu

state=${{VANI_STATE:-./vani-apply-state}}
mode=show
if [ "${{APPLY:-0}}" = 1 ]; then mode=apply; fi
case ${{1:-}} in
  '') ;;
  --apply) mode=apply ;;
  --undo) mode=undo ;;
  --job) mode=job ;;
  *) printf 'usage: sh apply.sh [--apply | --undo | --job]\n' >&2; exit 2 ;;
esac
"""

_FUNCTIONS: Final = r"""
say() { printf '%s\n' "$*"; }

# Prints a command, and runs it with --apply.
run() {
  say "$*"
  if [ "$mode" != show ]; then "$@"; fi
}

# need TOOL...: ends the script where it is to act without any of them.
need() {
  for tool in "$@"; do if command -v "$tool" >/dev/null 2>&1; then return 0; fi; done
  if [ "$mode" = show ]; then say "# $1 is not installed here: run this where the file system is mounted"
  else printf 'apply.sh: %s is not installed here; run this where the file system is mounted\n' "$1" >&2; exit 1; fi
}

# keep NUMBER PATH [OPTION]: writes the layout of PATH down, once.
keep() {
  if [ "$mode" != apply ] || [ -e "$state/$1.yaml" ]; then return 0; fi
  mkdir -p "$state"
  if [ $# -gt 2 ]; then
    lfs getstripe "$3" --raw "$2" >"$state/$1.raw"
    lfs getstripe "$3" --yaml "$2" >"$state/$1.part"
  else
    lfs getstripe --yaml "$2" >"$state/$1.part"
  fi
  mv "$state/$1.part" "$state/$1.yaml"
}

# layout NUMBER PATH COMMAND...: the default of a folder, or a new file.
layout() {
  number=$1 path=$2
  shift 2
  if [ "$mode" = undo ]; then
    if [ -d "$path" ] && [ -e "$state/$number.yaml" ]; then
      if grep -Eq 'lcm_|stripe_count:[[:space:]]*-?[1-9]|stripe_size:[[:space:]]*[1-9]' "$state/$number.raw"; then
        run lfs setstripe --yaml="$state/$number.yaml" "$path"
      else
        run lfs setstripe -d "$path" # the folder had no layout
      fi
      rm -f "$state/$number.yaml" "$state/$number.raw"
    elif [ -e "$state/$number.made" ]; then
      if [ -s "$path" ]; then say "# kept, contains data: $path"; else run rm -f -- "$path"; fi
      rm -f "$state/$number.made"
    fi
  elif [ -d "$path" ]; then
    keep "$number" "$path" -d
    run "$@"
  elif [ -e "$path" ]; then
    say "# unchanged, because a layout is fixed when a file is made: $path"
  else
    if [ "$mode" = apply ]; then mkdir -p "$state"; fi
    run "$@"
    if [ "$mode" = apply ]; then : >"$state/$number.made"; fi
  fi
}

# migrate NUMBER PATH COMMAND...: copies the data of a file into another layout.
migrate() {
  number=$1 path=$2
  shift 2
  if [ "$mode" = undo ]; then
    if [ -e "$state/$number.yaml" ]; then
      run lfs migrate --yaml="$state/$number.yaml" "$path"
      rm -f "$state/$number.yaml"
    fi
  elif [ "$mode" = apply ] && ! [ -f "$path" ]; then
    say "# no such file: $path"
  else
    keep "$number" "$path"
    run "$@"
  fi
}

# directory NUMBER PATH COMMAND...: a new folder, or the default of new folders in it (-D).
directory() {
  number=$1 path=$2
  shift 2
  if [ "$mode" = undo ]; then
    if [ -e "$state/$number.default" ]; then run lfs setdirstripe -D -d "$path"
    elif [ -e "$state/$number.made" ]; then rmdir -- "$path" 2>/dev/null || say "# kept, contains data: $path"; fi
    rm -f "$state/$number.default" "$state/$number.made"
    return 0
  fi
  kind=made
  for word in "$@"; do if [ "$word" = -D ]; then kind=default; fi; done
  if [ "$kind" = made ] && [ -e "$path" ]; then say "# unchanged, because it exists already: $path"; return 0; fi
  if [ "$mode" = apply ]; then mkdir -p "$state"; fi
  run "$@"
  if [ "$mode" = apply ]; then : >"$state/$number.$kind"; fi
}
"""

_ATTRIBUTE_FUNCTIONS: Final = r"""
# attribute NUMBER PATH KIND [VALUE...]: what new files in a folder of a BeeGFS or a DAOS get.
attribute() {
  number=$1 path=$2 kind=$3
  shift 3
  before=$state/$number.$kind
  if [ "$mode" = undo ]; then
    if [ -e "$before" ]; then
      read -r first second <"$before" || :
      if [ -d "$path" ]; then "set_$kind" "$path" "$first" "$second"; fi
      rm -f "$before"
    fi
  elif [ "$mode" = apply ] && ! [ -d "$path" ]; then
    say "# no such folder: $path"
  else
    if [ "$mode" = apply ] && ! [ -e "$before" ]; then
      mkdir -p "$state"
      "${kind}_of" "$path" >"$before.part"
      if ! [ -s "$before.part" ]; then
        rm -f "$before.part"
        rmdir "$state" 2>/dev/null || :
        printf 'apply.sh: the current setting is not known, so it is not changed: %s\n' "$path" >&2
        exit 1
      fi
      mv "$before.part" "$before"
    fi
    "set_$kind" "$path" "$@"
  fi
}

# BeeGFS up to 7 has beegfs-ctl, 8 has beegfs, which prints the same with --retro.
pattern_of() {
  if command -v beegfs-ctl >/dev/null 2>&1; then beegfs-ctl --getentryinfo "$1"
  else beegfs entry info --retro --verbose "$1"; fi |
    awk '/Chunksize:/ { chunk = toupper($NF) }
      /storage targets: desired:/ { sub(/.*desired: */, ""); sub(/[^0-9].*/, ""); targets = $0 }
      END { if (targets != "" && chunk ~ /^[0-9]+[KMG]?$/) print targets, chunk }'
}

set_pattern() {
  if command -v beegfs-ctl >/dev/null 2>&1 || ! command -v beegfs >/dev/null 2>&1; then
    run beegfs-ctl --setpattern --numtargets="$2" --chunksize="$3" "$1"
  else
    case $3 in *[KMG]) run beegfs entry set --num-targets="$2" --chunk-size="$3iB" "$1" ;;
    *) run beegfs entry set --num-targets="$2" --chunk-size="$3" "$1" ;; esac
  fi
}

class_of() {
  daos filesystem get-attr --path "$1" | sed -n 's/^.*Object Class = *\([A-Za-z0-9_][A-Za-z0-9_]*\) *$/\1/p' | head -n 1
}

set_class() {
  case $2 in
    [Uu]*) run daos filesystem reset-oclass --path "$1" ;; # UNKNOWN: it had none of its own
    *) run daos filesystem set-attr --oclass "$2" --path "$1" ;;
  esac
}
"""

_FOOT: Final = r"""
case $mode in
  job) in_the_job ;;
  undo) {need}take_back ;;
  *)
    {need}steps
    if [ "$mode" = show ]; then
      say '# Nothing was done: sh apply.sh --apply does it, sh apply.sh --job shows lines for the job.'
    fi
    ;;
esac
"""


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
    steps = (
        Step(
            f"{item.rule} {item.name}",
            f"({item.severity}): {item.reason}"
            + (f" {measured_gain(item.measured)}." if item.measured is not None else ""),
            item.apply,
            is_done=item.severity != "info",
        )
        for item in advice.recommendations
    )
    return render_steps(
        steps, maker=f"vani advise {version} from {one_line(advice.profile.path or 'a profile')}"
    )


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
    undo: list[str] = []
    job: list[str] = []
    needed: dict[str, None] = {}
    for step in recommended:
        if not step.apply:
            continue
        about = list(_about(step))
        lasting, later = _lines(step.apply)
        if not step.is_done:
            steps += ["", *about, *(_comment(f"info, so not done: {line}") for line in step.apply)]
            continue
        if lasting:
            steps += ["", *about]
        for words in lasting:
            number, (kind, values) = str(len(undo) + 1), _attribute(words)
            if kind is None:
                steps.append(shlex.join([_STEPS[words[1]], number, words[-1], *words]))
                undo.insert(0, shlex.join([_STEPS[words[1]], number, words[-1]]))
            else:
                steps.append(shlex.join(["attribute", number, words[-1], kind, *values]))
                undo.insert(0, shlex.join(["attribute", number, words[-1], kind]))
            needed.setdefault("lfs" if kind is None else _PROGRAMS[kind])
        if later:
            job += [
                "",
                *about,
                *(f"say {shlex.quote(one_line(line))}" for line in ["", _comment(step.title), *later]),
            ]
    head = _HEAD.format(maker=one_line(maker))
    body = _function("steps", steps) + _function("take_back", undo) + _function("in_the_job", job)
    functions = _FUNCTIONS + (_ATTRIBUTE_FUNCTIONS if needed.keys() - {"lfs"} else "")
    fixed = [head + functions, _FOOT.replace("{need}", "".join(f"need {programs}; " for programs in needed))]
    before, after = (text.replace("apply.sh", name) for text in fixed)
    return before + body + after


def lasting_commands(apply: Sequence[str]) -> list[list[str]]:
    """Words of the commands in a step's lines that the script runs itself; the last word is the path."""
    return _lines(apply)[0]


def plain_words(line: str) -> list[str] | None:
    """The words of a command that a shell would not expand; None for anything else, or with control characters."""
    if not line.isprintable():
        return None
    words = line.split(" ") if "'" not in line and '"' not in line else _quoted_words(line)
    if words is None or not all(words) or not all(_WORD.fullmatch(word) for word in words):
        return None
    return [shlex.split(word)[0] for word in words if word]


def _quoted_words(line: str) -> list[str] | None:
    """Words with their quotes; None if one of them does not expand to itself."""
    words, at = [], 0
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None or (match.end() < len(line) and line[match.end()] != " "):
            return None
        words.append(match[0])
        at = match.end() + 1
    return words


def _lines(apply: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Commands with lasting effect, as words, and the lines that belong in the job script."""
    lasting: list[list[str]] = []
    later: list[str] = []
    for line in apply:
        words = plain_words(line)
        is_step = words is not None and len(words) > 2 and words[0] == "lfs" and words[1] in _STEPS
        is_step = is_step or (words is not None and _attribute(words)[0] is not None)
        # The last word must be a path, not something that `lfs` would take for an option.
        if words is not None and is_step and not words[-1].startswith("-"):
            lasting.append(words)
        else:
            later.append(line)
    return lasting, later


def _attribute(words: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Kind and values of the attribute that a command sets for a folder, its last word; None for another command."""
    for kind, pattern in _ATTRIBUTES.items():
        if match := pattern.fullmatch(" ".join(words[:-1])):
            return kind, match.groups()
    return None, ()


def _about(step: Step) -> Iterator[str]:
    line = ""
    for word in one_line(f"{step.title} {step.why}").split(" "):
        if line and len(line) + len(word) > _WIDTH:
            yield _comment(line)
            line = ""
        line = f"{line} {word}" if line else word
    yield _comment(line)


def _comment(text: str) -> str:
    # A backslash at the end of a comment continues nothing, but shellcheck warns about it.
    return f"# {one_line(text).rstrip(chr(92))}".rstrip()


def _function(name: str, lines: Sequence[str]) -> str:
    inside = lines if any(line and not line.startswith("#") for line in lines) else [*lines, "  :"]
    body = "\n".join(line if not line or line.startswith("  ") else f"  {line}" for line in inside)
    return f"\n{name}() {{\n{body.lstrip(chr(10))}\n}}\n"
