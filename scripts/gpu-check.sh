#!/usr/bin/env bash
# Checks, times and grades the shipped kernels and answers on this machine's GPU, beside PyTorch and the
# simulator's model. Writes cells of the device cuda and benchmarks/gpu_<name>_<date>.md and .json.
#   scripts/gpu-check.sh [--results DIR] [OPTION]...
#     --results DIR   where to (default: results/)
#     OPTION          of `assay gpu` and `assay run` alike: --model, -c, --quick, --driver, --management;
#                     with --model the answers of these models alone, which are then timed beside par too
# Needs a GPU of compute capability 9.0, its driver and nvcc 13; PyTorch where it is to be compared with.
set -euo pipefail
results=results
if [ "${1-}" = --results ]; then
  results=$(realpath -m "$2")
  shift 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh assay assay_described
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
build/assay gpu --json "$out/gpu.json" "$@" || status=$?
[ -s "$out/gpu.json" ] || exit "$status"
build/assay gpu --sizes sim --modelled --no-check --few --json "$out/model.json" "$@" >/dev/null || status=$?
# What failed may have written nothing; the rest is kept.
model=()
if [ -s "$out/model.json" ]; then model=(--model "$out/model.json"); fi
build/assay run --device cuda --results "$results" "$@" || status=$?
peers=()
if python3 -c 'import torch' 2>/dev/null; then
  python3 benchmarks/gpu_peers.py --json "$out/peers.json" || status=$?
  if [ -s "$out/peers.json" ]; then peers=(--peers "$out/peers.json"); fi
else
  echo "no PyTorch: its operators are left out" >&2
fi
name=$(python3 -c 'import json, re, sys
print(re.sub("[^a-z0-9]+", "_", json.load(open(sys.argv[1]))["gpu"]["name"].lower().removeprefix("nvidia ")))' "$out/gpu.json")
mkdir -p "$results/benchmarks"
to=$results/benchmarks/gpu_${name}_$(date -u +%F)
python3 -c 'import json, pathlib, sys
files = [p for p in map(pathlib.Path, sys.argv[1:]) if p.stat().st_size > 0]
print(json.dumps({p.stem: json.loads(p.read_text()) for p in files}, indent=1))' "$out"/*.json >"$to.json"
python3 benchmarks/gpu_table.py "$out/gpu.json" "${model[@]}" "${peers[@]}" >"$to.md"
echo "wrote $to.md, $to.json and cells of $results"
exit "$status"
