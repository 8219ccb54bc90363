#!/usr/bin/env bash
# Sets up, runs the benchmark on submissions/ and brings the README's rankings up to date. Arguments
# go to `assay run`; see build/assay run --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh assay
build/assay run "$@"
build/assay report
