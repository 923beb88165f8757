"""A placement as a bash script that shows, applies and undoes it.

Paths come from a document that anyone may have written, so each is one quoted word, and comments contain no line
ends.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from vani.centre.plan.placement.layouts import PURPOSES
from vani.centre.plan.text import left_out
from vani.errors import InputError, one_line
from vani.units import lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlacePlan, Plan

_HEAD: Final = r"""#!/usr/bin/env bash
# Made by vani plan place {version}.
#   bash place.sh           shows the commands, and does nothing
#   bash place.sh --apply   creates the files, empty, on their OSTs, and skips existing files
#   bash place.sh --undo    removes those that it created and that are still empty
"""

_FUNCTIONS: Final = r"""# File names are literal, even with special characters:
# shellcheck disable=SC1003,SC2016,SC2088
set -euo pipefail

state=${VANI_STATE:-./vani-place-state}
mode=show
case ${1:-} in
  '') ;;
  --apply) mode=apply ;;
  --undo) mode=undo ;;
  *) printf 'usage: bash place.sh [--apply | --undo]\n' >&2; exit 2 ;;
esac
if [ "$mode" = apply ]; then
  command -v lfs >/dev/null || { printf 'place.sh: lfs is not installed here\n' >&2; exit 1; }
  mkdir -p "$state"
fi

# Prints a command as it can be typed, and runs it with --apply.
run() {
  local word
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./,=:-]*) printf '%q ' "$word" ;;
      *) printf '%s ' "$word" ;;
    esac
  done
  printf '\n'
  if [ "$mode" != show ]; then "$@"; fi
}

# place NUMBER COMMAND...: the last word is the file.
place() {
  local number=$1 path=${!#}
  shift
  if [ "$mode" = undo ]; then
    # Another plan may have counted other files.
    if ! cmp -s <(printf '%s' "$path") "$state/$number.made"; then return 0; fi
    if [ -s "$path" ]; then printf '# kept, contains data: %q\n' "$path"; else run rm -f -- "$path"; fi
    rm -f "$state/$number.made"
  elif [ -e "$path" ]; then
    printf '# skipped, because a layout is fixed when a file is created: %q\n' "$path"
  else
    run "$@"
    if [ "$mode" = apply ]; then printf '%s' "$path" >"$state/$number.made"; fi
  fi
}
"""


def render(plan: Plan) -> str:
    """Write the script.

    Raises
    ------
    InputError
        The plan is of a kind that a script cannot carry out.
    """
    if plan.kind != "place":
        raise InputError(
            f"a plan of kind {plan.kind!r} cannot be written as a script",
            where="--format",
            todo="take text, yaml or json",
        )
    return "\n".join(_lines(cast("PlacePlan", plan))) + "\n"


def _lines(plan: PlacePlan) -> Iterator[str]:
    yield _HEAD.format(version=one_line(plan.version)).rstrip()
    for source in plan.inputs:
        yield _comment(f"  from {source.kind} {source.path or 'given in memory'}, SHA-256 {source.sha256}")
    first = left_out(plan)
    if first:
        yield _comment(first)
    yield _comment(f"{'Worth pinning' if plan.pin else 'Better left to Lustre'}: {plan.pin_reason}.")
    sizes = dict.fromkeys(
        (extent.set_stripe_size, extent.size_for) for file in plan.files for extent in file.extents if extent.osts
    )
    yield from (_comment(f"Stripes of {lfs_size(size)}: {PURPOSES[purpose]}.") for size, purpose in sizes)
    yield from (_comment(f"Note: {note}.") for note in plan.notes)
    for answer in plan.answers:
        yield _comment(f"Another answer ({answer.who}): {answer.name}. {answer.why}.")
        yield from (_comment(f"  {line}") for line in answer.lines)
    yield _FUNCTIONS.rstrip()
    for number, file in enumerate(plan.files, start=1):
        if file.command is None:
            yield _comment(f"Lustre chooses: {file.path}")
            continue
        words = shlex.split(file.command)
        yield " ".join(["place", str(number), *map(shlex.quote, words)])


def _comment(text: str) -> str:
    return f"# {one_line(text)}"
