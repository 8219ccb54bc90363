#!/usr/bin/env bash
# Installs what is missing (Debian packages, by apt), configures and builds assay in build/, or the targets given.
#   --tests     also what the tests need, and the tests
#   --checks    also what scripts/check.sh and scripts/fuzz.sh need
# Called by run.sh, test.sh and .ci/run; does nothing that is done already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(g++ cmake ninja-build pkg-config git python3
  libcli11-dev nlohmann-json3-dev libfmt-dev libeigen3-dev libseccomp-dev libssl-dev liblzma-dev libvalijson-dev)
test_packages=(libgtest-dev libgmock-dev dpkg-dev)
check_packages=(clang clang-format clang-tidy libclang-rt-14-dev)
options=()
case "${1:-}" in
  --tests | --checks)
    packages+=("${test_packages[@]}")
    [ "$1" = --tests ] || packages+=("${check_packages[@]}")
    options+=(-DBUILD_TESTING=ON)
    shift
    ;;
  *)
    # Where tests were built before, they stay.
    [ -e build/CMakeCache.txt ] || options+=(-DBUILD_TESTING=OFF)
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done

if [ "${#missing[@]}" -gt 0 ]; then
  if [ "$(id -u)" -eq 0 ]; then
    root=()
  elif sudo -n true 2>/dev/null; then
    root=(sudo)
  else
    echo "These Debian packages are missing; install them as root and call this script again:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 2
  fi
  echo "Installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${root[@]}" apt-get update -qq
  "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "${options[@]}" >/dev/null
quiet=(--quiet)
[ -t 1 ] && quiet=()  # a terminal shows how far it is
[ -e build/assay ] || echo "Building; the first time takes some minutes." >&2
ninja -C build "${quiet[@]}" "$@"
