#!/usr/bin/env bash
# Fuzzes what reads the bytes of submissions and strangers, each target for SECONDS (default 120), all of
# them or the named ones; --list names them, --build only builds them, --seeds TARGET FOLDER writes what
# the target's corpus begins with. What is built and found lies in build-fuzz: a corpus a target that grows
# from run to run, and in crashes/ the inputs that break something.
# Exit status: 0 nothing found, 1 a finding, 2 something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=()
for source in tests/fuzz/*_fuzzer.cpp; do
  all+=("$(basename "$source" _fuzzer.cpp)")
done
usage() {
  echo "usage: scripts/fuzz.sh [SECONDS | --build] [TARGET...]" >&2
  echo "       scripts/fuzz.sh --seeds TARGET FOLDER" >&2
  echo "targets: ${all[*]}" >&2
  exit 2
}
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${all[@]}"
  exit
fi

# The corpus of a target begins with its own seeds and with real files of its kind.
seed() {
  local target=$1 corpus=$2
  [ ! -d "tests/fuzz/seeds/$target" ] || cp "tests/fuzz/seeds/$target"/* "$corpus/"
  case "$target" in
    spec)
      for spec in challenges/*/spec.json; do
        cp "$spec" "$corpus/$(basename "$(dirname "$spec")")"
      done
      ;;
    code)
      for source in submissions/*/*/submission.c*; do
        cp "$source" "$corpus/$(dirname "$source" | tr / -)-$(basename "$source")"
      done
      ;;
    published) cp results/published/*.json "$corpus/" ;;
    board | evidence | run_record) python3 tests/fuzz/small_results.py "$target" results "$corpus" ;;
  esac
}
if [ "${1:-}" = --seeds ]; then
  [ $# -eq 3 ] && [ -e "tests/fuzz/$2_fuzzer.cpp" ] && [ -d "$3" ] || usage
  seed "$2" "$3"
  exit
fi
seconds=120
only_build=
case "${1:-}" in
  "") ;;
  --build)
    only_build=yes
    shift
    ;;
  *[!0-9]*) ;;
  *)
    seconds=$1
    shift
    ;;
esac
targets=("${@:-${all[@]}}")
for target in "${targets[@]}"; do
  [ -e "tests/fuzz/${target}_fuzzer.cpp" ] || usage
done

clang=$(command -v clang++ || command -v clang++-14 || true)
if [ -z "$clang" ] || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$clang" -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null; then
  echo "clang++ with libFuzzer is missing; install it as root:" >&2
  # As scripts/setup.sh names it.
  release=$({ dpkg-query -W -f '${Depends}\n' clang; apt-cache depends -i clang; } 2>/dev/null |
    grep -om1 'clang-[0-9]\+' || true)
  echo "  apt-get install clang libclang-rt${release#clang}-dev" >&2
  exit 2
fi

build=build-fuzz
mkdir -p "$build/corpus" "$build/crashes" "$build/logs"
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clang" >"$build/logs/cmake" 2>&1 || {
  cat "$build/logs/cmake" >&2
  exit 2
}
echo "Building ${#targets[@]} fuzzers"
cmake --build --preset fuzz --target "${targets[@]/%/_fuzzer}" >"$build/logs/build" 2>&1 || {
  tail -n 30 "$build/logs/build" >&2
  exit 2
}

[ -z "$only_build" ] || exit 0

# Where nvcc is installed, what it makes of the challenges' own kernels: a file for each function, with
# what precedes the first one.
real_ptx() {
  nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || true)
  [ ! -e "$build/real-ptx" ] || return 0
  if [ -z "$nvcc" ]; then
    echo "No nvcc: the PTX parser's corpus lacks the challenges' own kernels" >&2
    return
  fi
  export nvcc build
  export -f ptx_of
  printf '%s\0' challenges/*/baselines/naive.cu submissions/*/*/submission.cu |
    xargs -0 -n 1 -P "$(nproc)" bash -c 'ptx_of "$@"' ptx_of "$1" || exit 2
  touch "$build/real-ptx"
}

ptx_of() {
  local corpus=$1 source=$2 name ptx
  name=${source#challenges/}
  name=${name#submissions/*/}
  name=${name%%/*}
  ptx=$build/$(tr / - <<<"$source").ptx
  "$nvcc" -std=c++20 -O3 -w -arch=compute_90 -ptx -Iinclude "-Ichallenges/$name" -o "$ptx" "$source" || {
    echo "$source gives no PTX for the corpus" >&2
    return 1
  }
  awk -v prefix="$corpus/$(dirname "$source" | tr / -)" '
    /^(\.visible |\.weak )*\.(entry|func) / { file = sprintf("%s-%d.ptx", prefix, ++n); printf "%s", head >file }
    /^\/\// { next }
    n == 0 { head = head $0 "\n"; next }
    { print >file }' "$ptx"
}

# Words that random bytes would hardly become.
words() {
  case "$1" in
    ptx_parser | device_messages)
      for word in .version .target .address_size .visible .extern .weak .common .entry .func .param .reg \
        .global .const .shared .local .align .attribute .managed .ptr .v4 .pred .b8 .b32 .b64 .b128 .f32 .f64 \
        .maxntid .reqntid .minnctapersm .noreturn .pragma .explicitcluster .reqnctapercluster .branchtargets \
        .calltargets .callprototype .alias .file .loc .section function_name inlined_at generic '0xFF(' \
        '@!%p1' '%r<9>' '%tid.x' WARP_SZ call bra brx.idx 0f3F800000 0d3FF0000000000000 1.5e3 0b101 017U \
        '[%rd1+-4]' '_|' '::' '<<' '(.s64)' '/*' '*/' '//'; do
        printf '"%s"\n' "$word"
      done
      ;;
    fat_binary)
      printf '"%s"\n' '\x50\xed\x55\xba' '\x01\x00' '\x40\x00\x00\x00' '\x10\x00' '.version 8.0'
      ;;
    text)
      printf '"%s"\n' '\x1b[2J' '\xc2\x9b' '\xe2\x80\xae' '<script>' '](http:' '| --- |' ':smile:' 'www.' \
        "undefined reference to \`" 'ld: ' ": in function \`" 'not supported on .target' 'requires .target'
      ;;
    code)
      printf '"%s"\n' 'void f() {' 'template <' 'operator' 'struct ' 'namespace ' 'if (' 'else ' 'do ' 'while (' \
        'for (;;)' 'switch (' 'case ' 'try {' 'catch (' '[&]' '<<<' '>>>' '#if 0' '#else' '#endif' '#define ' \
        'R\"(' '/*' '*/' '//' '::' ': warning: ' '): warning #' ': note: ' ': In function ' 'required from'
      ;;
    *)
      # The keys and words of the house's own JSON.
      cat challenges/*.schema.json src/grade/*.cpp src/records/*.{h,cpp} src/serve/grade_request.cpp src/spec/spec.cpp \
        src/store/run_*.{h,cpp} |
        grep -oE '"[a-z0-9_]{2,24}"' | sort -u
      printf '"%s"\n' '1e308' '-0.0' '\\u001b' '\\ud800' '18446744073709551615' '[[' '{}' 'nan' '-inf'
      ;;
  esac
}

fuzz() {
  local target=$1 status=0
  mkdir -p "$build/corpus/$target"
  seed "$target" "$build/corpus/$target"
  [ "$target" != ptx_parser ] || real_ptx "$build/corpus/$target"
  words "$target" >"$build/$target.dict"
  mkdir -p "$build/crashes/$target"
  echo "Fuzzing $target for $seconds s"
  "$build/tests/fuzz/${target}_fuzzer" -max_total_time="$seconds" -dict="$build/$target.dict" -max_len=65536 \
    -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 -artifact_prefix="$build/crashes/$target/" \
    "$build/corpus/$target" >"$build/logs/$target" 2>&1 || status=$?
  grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)|^#[0-9]+[[:space:]]+DONE' \
    "$build/logs/$target" || true
  if [ "$status" -ne 0 ]; then
    echo "A finding; see $build/logs/$target. Inputs that break $target:" >&2
    ls "$build/crashes/$target" >&2
    return 1
  fi
}

found=0
for target in "${targets[@]}"; do
  fuzz "$target" || found=1
done
if [ "$found" -ne 0 ]; then
  exit 1
fi
echo "Nothing found."
