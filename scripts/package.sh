#!/usr/bin/env bash
# Makes a Debian package that runs on any x86-64-v3 processor (with AVX2) in build-package/ and
# prints its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset package >/dev/null
cmake --build --preset package
cd build-package
cpack -G DEB
