#!/usr/bin/env bash
# Installs what is missing (Debian packages, by apt), configures and builds assay in build/, or the targets given.
#   --tests     also what the tests need, and the tests
#   --browser   also what the test of the site in a browser needs: chromium, node, and from npm's registry
#               what tests/browser/package-lock.json lists, into build/browser/
#   --checks    also what scripts/check.sh and scripts/fuzz.sh need
# Called by run.sh, test.sh and .ci/run; does nothing that is done already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(g++ cmake ninja-build pkg-config git python3
  libcli11-dev nlohmann-json3-dev libfmt-dev libeigen3-dev libseccomp-dev libssl-dev liblzma-dev libvalijson-dev
  libcurl4-openssl-dev libcpp-httplib-dev)
test_packages=(libgtest-dev libgmock-dev dpkg-dev file ccache pmccabe)
browser_programs=(chromium node npm)
declare -A package_of=([chromium]=chromium [node]=nodejs [npm]=npm)
check_packages=(clang clang-format clang-tidy)
# Sources compiled together take half the time. Who changes them is better off with the preset dev.
options=()
[ -e build/CMakeCache.txt ] || options+=(-DCMAKE_UNITY_BUILD=ON)
case "${1:-}" in
  --tests | --checks | --browser)
    packages+=("${test_packages[@]}")
    if [ "$1" = --checks ]; then
      # The runtime of sanitizers is named by the distribution's release of clang: libclang-rt-14-dev. Where neither
      # dpkg nor apt knows clang yet, libclang-rt-dev depends on it.
      release=$({ dpkg-query -W -f '${Depends}\n' clang; apt-cache depends -i clang; } 2>/dev/null |
        grep -om1 'clang-[0-9]\+' || true)
      packages+=("${check_packages[@]}" "libclang-rt${release#clang}-dev")
    fi
    browser=no
    if [ "$1" = --browser ]; then
      browser=yes
      # By program: node often comes from elsewhere than Debian.
      for program in "${browser_programs[@]}"; do
        command -v "$program" >/dev/null || packages+=("${package_of[$program]}")
      done
    fi
    options+=(-DBUILD_TESTING=ON)
    shift
    ;;
  *)
    # Where tests were built before, they stay.
    [ -e build/CMakeCache.txt ] || options+=(-DBUILD_TESTING=OFF)
    ;;
esac

missing=()
: "${browser:=no}"
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
  "${root[@]}" apt-get update -qq
  # sudo would drop what is exported.
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "${options[@]}" >/dev/null
if [ "$browser" = yes ] && ! cmp -s tests/browser/package-lock.json build/browser/package-lock.json; then
  rm -rf build/browser
  mkdir build/browser
  cp tests/browser/package.json tests/browser/package-lock.json build/browser
  # What is there by halves would pass for whole.
  if ! (cd build/browser && npm ci --no-audit --no-fund --loglevel=error >/dev/null); then
    rm -rf build/browser
    echo "npm ci failed in build/browser: is the registry of npm within reach?" >&2
    exit 2
  fi
fi
quiet=(--quiet)
[ -t 1 ] && quiet=()  # a terminal shows how far it is
[ -e build/assay ] || echo "Building; the first time takes some minutes." >&2
ninja -C build "${quiet[@]}" "$@"
