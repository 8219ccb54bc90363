#!/usr/bin/env bash
# Fuzzes the PTX parser with libFuzzer for SECONDS (default 120). The corpus grows in build-fuzz/corpus;
# inputs that break something are kept in build-fuzz/crashes.
# Exit status: 0 nothing found, 1 a finding, 2 something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-120}
case "$seconds" in
  "" | *[!0-9]*)
    echo "usage: scripts/fuzz.sh [SECONDS]" >&2
    exit 2
    ;;
esac

clang=$(command -v clang++ || command -v clang++-14 || true)
if [ -z "$clang" ] || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$clang" -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null; then
  echo "clang++ with libFuzzer is missing; install it as root:" >&2
  echo "  apt-get install clang libclang-rt-14-dev libfmt-dev" >&2
  exit 2
fi

build=build-fuzz
mkdir -p "$build/corpus" "$build/crashes"
"$clang" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
  -DFMT_HEADER_ONLY -Isrc src/sim/ptx/*.cpp tests/sim/fuzz/ptx_parser_fuzzer.cpp -o "$build/ptx_parser_fuzzer"
cp tests/sim/fuzz/seeds/*.ptx "$build/corpus/"

# Where nvcc is installed, what it makes of the challenges' own kernels: a file for each function, with
# what precedes the first one.
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || true)
if [ -n "$nvcc" ] && [ ! -e "$build/real-ptx" ]; then
  for source in challenges/*/naive.cu submissions/*/*/submission.cu; do
    name=$(basename "$(dirname "$source")")
    "$nvcc" -std=c++17 -O3 -w -arch=compute_90 -ptx -Iinclude "-Ichallenges/$name" -o "$build/source.ptx" "$source" || continue
    awk -v prefix="$build/corpus/$(dirname "$source" | tr / -)" '
      /^(\.visible |\.weak )*\.(entry|func) / { file = sprintf("%s-%d.ptx", prefix, ++n); printf "%s", head >file }
      /^\/\// { next }
      n == 0 { head = head $0 "\n"; next }
      { print >file }' "$build/source.ptx"
  done
  touch "$build/real-ptx"
fi

# Words that random bytes would hardly become.
for word in .version .target .address_size .visible .extern .weak .common .entry .func .param .reg \
  .global .const .shared .local .align .attribute .managed .ptr .v4 .pred .b8 .b32 .b64 .b128 .f32 .f64 \
  .maxntid .reqntid .minnctapersm .noreturn .pragma .explicitcluster .reqnctapercluster .branchtargets \
  .calltargets .callprototype .alias .file .loc .section function_name inlined_at generic '0xFF(' \
  '@!%p1' '%r<9>' '%tid.x' WARP_SZ call bra brx.idx 0f3F800000 0d3FF0000000000000 1.5e3 0b101 017U '[%rd1+-4]' \
  '_|' '::' '<<' '(.s64)' '/*' '*/' '//'; do
  printf '"%s"\n' "$word"
done >"$build/ptx.dict"

echo "Fuzzing the PTX parser for $seconds s"
status=0
"$build/ptx_parser_fuzzer" -max_total_time="$seconds" -dict="$build/ptx.dict" -max_len=65536 -timeout=20 \
  -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 -artifact_prefix="$build/crashes/" "$build/corpus" \
  >"$build/log" 2>&1 || status=$?
grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)|^#[0-9]+[[:space:]]+DONE' "$build/log" || true
if [ "$status" -ne 0 ]; then
  echo "A finding; see $build/log. Inputs that break the parser:" >&2
  ls "$build/crashes" >&2
  exit 1
fi
echo "Nothing found."
