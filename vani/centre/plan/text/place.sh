#!/usr/bin/env bash
# Made by vani plan place VERSION.
#   bash place.sh           shows the commands, and does nothing
#   bash place.sh --apply   creates the files, empty, on their OSTs, and skips existing files
#   bash place.sh --undo    removes those that it created and that are still empty
# COMMENTS
# File names are literal, even with special characters:
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
