#!/usr/bin/env bash
# Makes a Debian package that runs on any processor of this architecture (x86-64-v3 on Intel and AMD) in
# build-package/ and prints its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset package >/dev/null
cmake --build --preset package
cd build-package
cpack -G DEB
