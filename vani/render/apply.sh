#!/bin/sh
# Made by MAKER.
#   sh apply.sh           shows the commands, and does nothing
#   sh apply.sh --apply   does it (as does APPLY=1), and keeps the layouts of before in $VANI_STATE
#   sh apply.sh --undo    brings those back: default layouts of folders, layouts of migrated files
#   sh apply.sh --job     prints what belongs into the job script
# File names are literal, even with special characters:
# shellcheck disable=SC1003,SC2016,SC2088
set -eu
state=${VANI_STATE:-./vani-apply-state}
mode=show
if [ "${APPLY:-0}" = 1 ]; then mode=apply; fi
case ${1:-} in
  '') ;;
  --apply | --undo | --job) mode=${1#--} ;;
  *) printf 'usage: sh apply.sh [--apply | --undo | --job]\n' >&2; exit 2 ;;
esac
say() { printf '%s\n' "$*"; }
fail() { printf 'apply.sh: %s\n' "$*" >&2; exit 1; }

# Prints a command for a shell, and runs it with --apply and --undo.
run() {
  line=
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_@%+=:,./-]*) word=\'$(printf %s "$word" | sed "s/'/'\\\\''/g")\' ;;
    esac
    line="$line $word"
  done
  say "${line# }"
  if [ "$mode" != show ]; then "$@"; fi
}

# need TOOL...: ends the script where it is to act without any of them.
need() {
  for tool in "$@"; do if command -v "$tool" >/dev/null 2>&1; then return 0; fi; done
  if [ "$mode" != show ]; then fail "$1 is not installed here; run this where the file system is mounted"; fi
  say "# $1 is not installed here: run this where the file system is mounted"
}

# keep NAME COMMAND...: with --apply, keeps what COMMAND prints in the file NAME, once.
keep() {
  if [ "$mode" != apply ] || [ -e "$state/$1" ]; then return 0; fi
  name=$state/$1
  shift
  mkdir -p "$state"
  "$@" >"$name.part"
  mv "$name.part" "$name"
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
    keep "$number.raw" lfs getstripe -d --raw "$path"
    keep "$number.yaml" lfs getstripe -d --yaml "$path"
    run "$@"
  elif [ -e "$path" ]; then
    say "# unchanged, because a layout is fixed when a file is made: $path"
  else
    run "$@"
    keep "$number.made" true
  fi
}

# migrate NUMBER PATH COMMAND...: copies the data of a file into another layout.
migrate() {
  number=$1 path=$2
  shift 2
  if [ "$mode" = undo ]; then
    if ! [ -e "$state/$number.yaml" ]; then return 0; fi
    run lfs migrate --yaml="$state/$number.yaml" "$path"
    rm -f "$state/$number.yaml"
  elif [ "$mode" = apply ] && ! [ -f "$path" ]; then
    say "# no such file: $path"
  else
    keep "$number.yaml" lfs getstripe --yaml "$path"
    run "$@"
  fi
}

# directory NUMBER PATH COMMAND...: a new folder, or the default of new folders in it (-D).
directory() {
  number=$1 path=$2 kind=made
  shift 2
  for word in "$@"; do if [ "$word" = -D ]; then kind=default; fi; done
  if [ "$mode" = undo ]; then
    if [ -e "$state/$number.default" ]; then run lfs setdirstripe -D -d "$path"
    elif [ -e "$state/$number.made" ]; then rmdir -- "$path" 2>/dev/null || say "# kept, contains data: $path"; fi
    rm -f "$state/$number.default" "$state/$number.made"
  elif [ "$kind" = made ] && [ -e "$path" ]; then
    say "# unchanged, because it exists already: $path"
  else
    run "$@"
    keep "$number.$kind" true
  fi
}

# attribute NUMBER PATH KIND [VALUE...]: what new files in a folder of a BeeGFS, a DAOS or a CephFS get.
attribute() {
  number=$1 path=$2 kind=$3
  shift 3
  if [ "$mode" = undo ]; then
    if ! [ -e "$state/$number.$kind" ]; then return 0; fi
    read -r first second third <"$state/$number.$kind" || :
    if [ -d "$path" ]; then "set_$kind" "$path" "$first" "$second" "$third"; fi
    rm -f "$state/$number.$kind"
  elif [ "$mode" = apply ] && ! [ -d "$path" ]; then
    say "# no such folder: $path"
  else
    keep "$number.$kind" "${kind}_of" "$path"
    if [ "$mode" = apply ] && ! [ -s "$state/$number.$kind" ]; then
      rm -f "$state/$number.$kind"
      rmdir "$state" 2>/dev/null || :
      fail "the current setting is not known, so it is not changed: $path"
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
    case $3 in *[KMG]) size=$3iB ;; *) size=$3 ;; esac
    run beegfs entry set --num-targets="$2" --chunk-size="$size" "$1"
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

# A folder of a CephFS has a layout of its own, or none: then it is that of the folder above.
stripes_of() {
  LC_ALL=C getfattr --absolute-names --only-values -n ceph.dir.layout "$1" 2>&1 |
    sed -n 's/.*stripe_unit=\([0-9]*\) stripe_count=\([0-9]*\) object_size=\([0-9]*\).*/\1 \2 \3/p
      s/.*: ceph\.dir\.layout: No such attribute$/none/p'
}

set_stripes() {
  case $2 in
    none) run setfattr -x ceph.dir.layout "$1" ;;
    *) run setfattr -n ceph.dir.layout -v "stripe_unit=$2 stripe_count=$3 object_size=$4" "$1" ;;
  esac
}

steps() {
  : STEPS
}

take_back() {
  : TAKE_BACK
}

in_the_job() {
  : JOB
}

case $mode in
  job) in_the_job ;;
  undo) take_back ;;
  *) steps ;;
esac
if [ "$mode" = show ]; then say '# Nothing was done: sh apply.sh --apply does it, sh apply.sh --job shows lines for the job.'; fi
