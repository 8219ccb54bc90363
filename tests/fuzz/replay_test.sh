#!/bin/sh
# Runs a replay (replay.cpp) on what the corpus of its target begins with.
# Usage: replay_test.sh REPLAY TARGET
set -eu
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
"$(dirname "$0")/../../scripts/fuzz.sh" --seeds "$2" "$seeds"
"$1" "$seeds"
