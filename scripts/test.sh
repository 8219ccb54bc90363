#!/usr/bin/env bash
# Sets up and runs the tests; with --slow also those labelled slow. Ends with ctest's summary. The test of the
# site in a browser runs where chromium and node are installed; --browser installs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exclude=(-LE slow)
setup=--tests
for argument in "$@"; do
  case "$argument" in
    --slow) exclude=() ;;
    --browser) setup=--browser ;;
    *)
      echo "usage: scripts/test.sh [--slow] [--browser]" >&2
      exit 2
      ;;
  esac
done
scripts/setup.sh "$setup"
ctest --test-dir build --output-on-failure -j2 "${exclude[@]}"
