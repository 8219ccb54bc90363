#!/usr/bin/env bash
# Sets up, runs the benchmark on submissions/ and brings the README's rankings up to date. Arguments
# go to `assay run`; see build/assay run --help. With --results the rankings are those of that folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/setup.sh" assay
"$root/build/assay" --root "$root" run "$@"
results=()
while [ $# -gt 0 ]; do
  case $1 in
    --results) results=(--results "$2"); shift ;;
    --results=*) results=("$1") ;;
  esac
  shift
done
"$root/build/assay" --root "$root" report "${results[@]}"
