#!/usr/bin/env bash
# Sets up, runs the benchmark on submissions/ and brings the README's rankings up to date. Arguments
# go to `assay run`; see build/assay run --help. With --results the rankings are those of that folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"
      [ -x "$root/build/assay" ] && exec "$root/build/assay" --root "$root" run --help
      exit 0
      ;;
  esac
done
# With what the program says of itself, `cmake --install build` has all that it needs.
"$root/scripts/setup.sh" assay assay_described
status=0
"$root/build/assay" --root "$root" run "$@" || status=$?
# What could be measured is stored even if something could not.
[ "$status" -eq 0 ] || [ "$status" -eq 2 ] || exit "$status"
results=()
while [ $# -gt 0 ]; do
  case $1 in
    --results) results=(--results "$2"); shift ;;
    --results=*) results=("$1") ;;
  esac
  shift
done
"$root/build/assay" --root "$root" report "${results[@]}"
exit "$status"
