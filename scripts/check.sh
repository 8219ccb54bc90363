#!/usr/bin/env bash
# Checks the form of the sources: clang-format on all of them, clang-tidy on those that changed.
#   scripts/check.sh            changed since this branch left origin/main, or main, or if that is this very commit
#                               since its parent
#   scripts/check.sh BASE       changed since it left BASE
#   scripts/check.sh --all      every source, which takes long
#   scripts/check.sh --fix      formats instead of checking, and ends
# A header that changed is read through one source that includes it.
# A source of which only comments changed counts as unchanged, unless clang-tidy reads one: NOLINT, or /*argument=*/.
# Needs what scripts/setup.sh --checks installs. Configures build-check/, where nothing is built.
# Exit status: 0 good, 1 something to mend, 2 something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=no fix=no base=""
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=yes ;;
    --fix) fix=yes ;;
    -*)
      echo "usage: scripts/check.sh [BASE | --all | --fix]" >&2
      exit 2
      ;;
    *) base=$1 ;;
  esac
  shift
done

for tool in clang-format clang-tidy; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing: scripts/setup.sh --checks" >&2
    exit 2
  fi
done

mapfile -t sources < <(git ls-files --cached --others --exclude-standard \
  '*.cpp' '*.h' '*.cu' ':!submissions' | while read -r file; do [ ! -e "$file" ] || echo "$file"; done)
if [ "$fix" = yes ]; then
  clang-format -i "${sources[@]}"
  exit 0
fi
status=0
clang-format --dry-run --Werror "${sources[@]}" || status=1
[ "$status" -eq 0 ] || echo "scripts/check.sh --fix formats them." >&2

# The source through which clang-tidy reads the file: itself, or of a header its own .cpp or else one that
# includes it.
reader_of() {
  case "$1" in
    *.h)
      local own=${1%.h}.cpp
      if [ -e "$own" ]; then
        echo "$own"
      else
        git grep -lF "#include \"${1#*/}\"" -- '*.cpp' | head -n 1 || true
      fi
      ;;
    *) echo "$1" ;;
  esac
}

# The text without comments and empty lines.
without_comments() { g++ -w -fpreprocessed -dD -E -P -x c++ - | sed 's/[ \t]*$//; /^$/d'; }

# Whether only comments differ between the commit and the file as it is.
only_comments_changed() {
  local commit=$1 file=$2
  git cat-file -e "$commit:$file" 2>/dev/null || return 1
  if git diff "$commit" -- "$file" | grep -q '^[-+].*\(NOLINT\|/\*\)'; then return 1; fi
  cmp -s <(git show "$commit:$file" | without_comments) <(without_comments <"$file")
}

# How each source is compiled, without precompiled headers: clang cannot read those of g++.
cmake -S . -B build-check -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
if [ "$all" = yes ]; then
  changed=("${sources[@]}")
else
  [ -n "$base" ] || base=$(git rev-parse --verify --quiet origin/main || git rev-parse --verify --quiet main || echo HEAD)
  [ "$(git rev-parse "$base")" != "$(git rev-parse HEAD)" ] || base=HEAD^
  if ! git rev-parse --verify --quiet "$base" >/dev/null; then
    echo "$base is not here (a shallow clone?), so clang-tidy reads what is not committed only" >&2
    base=HEAD
  fi
  left=$(git merge-base "$base" HEAD)
  mapfile -t changed < <({
    git diff --name-only --diff-filter=d "$left" -- '*.cpp' '*.h'
    git ls-files --others --exclude-standard -- '*.cpp' '*.h'
  } | while read -r file; do only_comments_changed "$left" "$file" || reader_of "$file"; done | sort -u)
fi
tidy=()
for file in "${changed[@]}"; do
  if grep -qF "/$file\"" build-check/compile_commands.json; then tidy+=("$file"); fi
done
echo "clang-format read ${#sources[@]} files; clang-tidy is to read ${#tidy[@]}"
[ "${#tidy[@]}" -gt 0 ] || exit "$status"

scripts/tidy.py build-check "${tidy[@]}" || status=1
exit "$status"
