#!/bin/sh
# Builds heat, runs it under Recorder and prints the folder of its trace.
#
#   ./run.sh before|after [FOLDER]     trace the version in that folder; it runs in FOLDER (a new one)
#   ./run.sh --check                   say whether Recorder would be used, and which one
#
# Recorder is looked for in RECORDER_LIB (path of librecorder.so), RECORDER_INSTALL_PATH/lib, and where the loader
# looks. Where it is not installed, the bundled trace of the same version stands in.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

recorder() {
  if [ -n "${RECORDER_LIB:-}" ]; then
    if [ ! -f "$RECORDER_LIB" ]; then
      echo "run.sh: RECORDER_LIB is $RECORDER_LIB, which is not a file; name librecorder.so" >&2
      exit 2
    fi
    echo "$RECORDER_LIB"
  elif [ -f "${RECORDER_INSTALL_PATH:-}/lib/librecorder.so" ]; then
    echo "$RECORDER_INSTALL_PATH/lib/librecorder.so"
  elif command -v ldconfig >/dev/null 2>&1; then
    ldconfig -p 2>/dev/null | sed -n 's/.*librecorder\.so.* => //p' | head -n 1
  fi
}

library=$(recorder)

case "${1:-}" in
  --check)
    echo "${library:-Recorder is not installed: bundled traces stand in}"
    exit 0 ;;
  before | after)
    version=$1 ;;
  *)
    echo "usage: run.sh before|after [FOLDER], run.sh --check" >&2
    exit 2 ;;
esac

if [ -z "$library" ]; then
  echo "run.sh: Recorder is not installed, the bundled trace stands in (RECORDER_LIB names another)" >&2
  # Seen from the working directory: the path ends up in the profile.
  [ "$here" = "$PWD" ] && prefix='' || prefix=$here/
  echo "${prefix}traces/$version/heat"
  exit 0
fi

folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
${CC:-cc} -O2 -o "$folder/heat" "$here/$version/heat.c"
# Recorder writes its trace into the working directory, named <host>-<user>-heat-<pid>-<time>.
(cd "$folder" && unset RECORDER_TRACES_DIR && RECORDER_WITH_NON_MPI=1 LD_PRELOAD="$library" ./heat heat.out >&2)
trace=$(find "$folder" -mindepth 2 -maxdepth 2 \( -name recorder.mt -o -name recorder.dat \) | head -n 1)
if [ -z "$trace" ]; then
  echo "run.sh: $library left no trace in $folder: is it a Recorder that traces programs without MPI?" >&2
  exit 1
fi
dirname -- "$trace"
