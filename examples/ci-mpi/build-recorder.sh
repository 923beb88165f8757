#!/bin/sh
# Builds Recorder into a folder, once: ./build-recorder.sh PREFIX. CI keeps the folder in its cache.
set -eu
prefix=$1
version=${RECORDER_VERSION:-v3.0.0}
if ls "$prefix"/lib*/librecorder.so >/dev/null 2>&1; then
  echo "Recorder is there: $prefix"
  exit 0
fi
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git clone --quiet --depth 1 --branch "$version" --recurse-submodules https://github.com/uiuc-hpc/Recorder "$source"
cmake -S "$source" -B "$source/build" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release
cmake --build "$source/build" --parallel 2
cmake --install "$source/build"
