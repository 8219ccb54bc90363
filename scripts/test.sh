#!/usr/bin/env bash
# Sets up and runs the tests; with --slow also those labelled slow. Ends with ctest's summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exclude=(-LE slow)
case "${1:-}" in
  "") ;;
  --slow) exclude=() ;;
  *)
    echo "usage: scripts/test.sh [--slow]" >&2
    exit 2
    ;;
esac
scripts/setup.sh --tests
ctest --test-dir build --output-on-failure -j2 "${exclude[@]}"
