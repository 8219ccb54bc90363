#!/usr/bin/env bash
# Tests `assay slurm` against a real Slurm: a cluster of two nodes on this machine, one of which dies
# in the middle.
#
# Usage: scripts/test-slurm.sh [ASSAY]   (default: build/assay)
#
# Needs Debian's slurm-wlm and munge, which it installs where it may (root or sudo), and root, as
# which the daemons run. They have a temporary folder and ports of their own; a cluster that runs on
# this machine is left alone. Exit status: 0 passed, 1 failed, 77 skipped, which it explains.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
assay=$(realpath -m "${1:-$root/build/assay}")
cd "$root"

skip() {
  echo "skipped: $1"
  exit 77
}

[ -x "$assay" ] || { echo "$assay is no program: build it, or name another" >&2; exit 1; }
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || skip "the daemons need root: run this as root, or where sudo asks nothing"
  exec sudo -n --preserve-env=PATH,ASSAY_INSTALL_SLURM "$root/scripts/test-slurm.sh" "$assay"
fi
installed=yes
for program in slurmctld slurmd munged sbatch; do
  command -v "$program" >/dev/null || installed=no
done
if [ "$installed" = no ]; then
  [ "${ASSAY_INSTALL_SLURM:-1}" = 1 ] || skip "slurm-wlm and munge are not installed: run scripts/test-slurm.sh"
  echo "installing slurm-wlm and munge"
  apt-get install -y --no-install-recommends slurm-wlm munge >/dev/null ||
    skip "cannot install slurm-wlm and munge: apt-get install slurm-wlm munge"
fi

tmp=$(mktemp -d "${TMPDIR:-/tmp}/assay-slurm.XXXXXX")
chmod 755 "$tmp"
pids=()
# Of a node, the slurmstepds first, so that none lives to tell how the others ended; then its daemon
# and what runs there for the cluster of this script.
processes_of() {
  local pid parent found=()
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "SLURM_CONF=$tmp/slurm.conf" || continue
    if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "slurmd .*-N $1 "; then
      found=("$pid" "${found[@]}")
    elif tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "SLURMD_NODENAME=$1"; then
      found+=("$pid")
      parent=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")
      grep -q slurmstepd "/proc/$parent/comm" && echo "$parent"
    fi
  done 2>/dev/null
  [ "${#found[@]}" = 0 ] || printf '%s\n' "${found[@]}"
}
tear_down() {
  local status=$? pid
  trap - EXIT
  for pid in "${pids[@]}" $(processes_of node1) $(processes_of node2); do
    kill -KILL "$pid" 2>/dev/null || true
  done
  if [ "$status" = 0 ]; then rm -rf "$tmp"; else echo "kept: $tmp" >&2; fi
  exit "$status"
}
trap tear_down EXIT
trap 'exit 1' INT TERM HUP

fail() {
  echo "FAILED: $1" >&2
  for log in "$tmp"/array.*.log "$tmp"/slurmctld.log "$tmp"/slurmd.node?.log; do tail -n 8 "$log" | sed "s|^|$(basename "$log"): |" >&2; done
  exit 1
}
wait_until() {  # SECONDS WHAT COMMAND...
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited too long until $what"
    sleep 0.2
  done
}

# --- a cluster ---
free_ports() {
  python3 -c '
import socket
held = [socket.socket() for _ in range(3)]
for s in held: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in held))'
}
read -r port0 port1 port2 < <(free_ports)
host=$(hostname -s)
mkdir "$tmp"/{munge,state,spool.node1,spool.node2}
chmod 700 "$tmp/munge"
head -c 1024 /dev/urandom >"$tmp/munge/key"
chmod 400 "$tmp/munge/key"
cat >"$tmp/slurm.conf" <<END
ClusterName=assay
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port0
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$tmp/munge.socket
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool.%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.%n.pid
SlurmctldLogFile=$tmp/slurmctld.log
SlurmdLogFile=$tmp/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmdTimeout=6
SlurmctldTimeout=6
ReturnToService=0
MailProg=/bin/true
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$port1 CPUs=1
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$port2 CPUs=1
PartitionName=test Nodes=node1,node2 Default=YES MaxTime=1:00:00
END
export SLURM_CONF=$tmp/slurm.conf TMPDIR=$tmp

munged --foreground --force --key-file="$tmp/munge/key" --socket="$tmp/munge.socket" \
  --pid-file="$tmp/munge/pid" --seed-file="$tmp/munge/seed" >"$tmp/munged.log" 2>&1 &
pids+=($!)
wait_until 20 "munged listens" test -S "$tmp/munge.socket"
slurmctld -D -c >"$tmp/slurmctld.out.log" 2>&1 &
pids+=($!)
for node in node1 node2; do
  slurmd -D -N "$node" >"$tmp/slurmd.$node.out.log" 2>&1 &
  pids+=($!)
done
both_idle() { [ "$(sinfo --noheader --format=%t,%D 2>/dev/null)" = idle,2 ]; }
wait_until 60 "both nodes are idle" both_idle
disown "${pids[@]}"  # so that the shell does not report their end
echo "two nodes are up"

# --- a run, one node of which dies ---
what=(--quick --device cpu --seed 7 -m textbook -m tuned -m flawed -c layer_norm_backward -c fused_softmax_topk)
cd "$tmp"
"$assay" --root "$root" slurm --array 2 --time 30 --poll 1 --results "$tmp/array" -- "${what[@]}" \
  >"$tmp/array.out.log" 2>"$tmp/array.err.log" &
follower=$!
pids+=("$follower")
dies=""
# A node whose shard has stored a result and is not done.
find_node() {
  local began shard
  for began in "$tmp"/array/slurm/*/marks/*.began; do
    [ -e "$began" ] && [ ! -e "${began%.began}.ended" ] || continue
    shard=$(basename "$began")
    shard=$(printf %04d "${shard%%.*}")
    if compgen -G "$tmp/array/slurm/*/shards/$shard/cells/*" >/dev/null; then
      dies=$(cat "$began")
      stored=$(find "$tmp"/array/slurm/*/shards/"$shard"/cells -type f | sort)
      dead_shard=$shard
      return 0
    fi
  done
  kill -0 "$follower" 2>/dev/null || fail "the array ended before a node could die: $(cat "$tmp/array.err.log")"
  return 1
}
wait_until 300 "a shard has stored a result" find_node
for pid in $(processes_of "$dies"); do kill -KILL "$pid" 2>/dev/null || true; done
before=$(stat -c '%n %Y %i' $stored)
echo "$dies died with shard $dead_shard, which had $(wc -l <<<"$stored") results"
status=0
wait "$follower" || status=$?
sed 's/^/  | /' "$tmp/array.err.log" "$tmp/array.out.log"
[ "$status" = 0 ] || fail "assay slurm ended with $status"
grep -q "failed on $dies: NODE_FAIL" "$tmp/array.err.log" || fail "no shard failed with its node"
grep -q "not on $dies" "$tmp/array.err.log" || fail "the shard was not kept off its node"
[ "$(stat -c '%n %Y %i' $stored)" = "$before" ] || fail "what was stored before was measured again"

# --- the same on one machine ---
"$assay" --root "$root" run --results "$tmp/alone" --cache "$tmp/cache" "${what[@]}" >"$tmp/alone.log" 2>&1 ||
  fail "assay run"
python3 - "$tmp/array" "$tmp/alone" <<'END' || fail "the boards differ"
import json, sys


def rows(folder):
    """What does not depend on time, by cell."""
    with open(folder + "/scoreboard.json") as file:
        board = json.load(file)
    found = {}
    for row in board["entries"]:
        cell, score = row["cell"], row["score"]
        found[cell["model"], cell["challenge"], cell["attempt"], cell["device"]] = {
            "verdict": score["verdict"], "failed": row["failed"], "seed": cell["seed"],
            "source": cell["source_hash"],
            "points": {d["name"]: d["points"] for d in score["dimensions"] if d["name"] != "performance"}}
    return found


many, one = map(rows, sys.argv[1:])
assert len(one) == 6, f"{len(one)} cells"
for cell in sorted(one.keys() | many.keys()):
    if one.get(cell) != many.get(cell):
        sys.exit(f"{cell}\n  one machine: {one.get(cell)}\n  two nodes:   {many.get(cell)}")
print("the merged board is that of one machine, timings aside")
END
echo "passed"
