#include "slurm/script.h"

#include <fmt/format.h>

#include "util/shell.h"

namespace assay::slurm {

namespace {

// A user's tasks on a node share a folder. Its name is known, so another user may have made it.
constexpr const char* kCache = R"sh(
cache=${TMPDIR:-/tmp}/assay-cache-$(id -u)
mkdir -m 700 "$cache" 2>/dev/null
mine=$(find "$cache" -prune -type d -user "$(id -u)" ! -perm -020 ! -perm -002 2>/dev/null)
if [ -z "$mine" ]; then
  echo "$cache is not a folder that you alone may write in: a temporary one takes its place" >&2
  cache=$(mktemp -d "$cache.XXXXXX") || exit 1
  trap 'rm -rf "$cache"' EXIT
fi
)sh";

}  // namespace

std::string job_script(const ScriptOptions& options, const ArrayFolder& folder,
                       const Array& array) {
  std::string command;
  const auto add = [&](const std::string& text) { command += (command.empty() ? "" : " ") + text; };
  for (const std::string& word : options.assay) add(quoted(word));
  add("run");
  for (const std::string& word : options.run) add(quoted(word));
  if (!options.own_seed) add(fmt::format("--seed {}", array.seed));
  add(fmt::format("--shard \"$shard/{}\"", array.shards));
  add("--costs " + quoted(folder.costs().string()));
  add("--go-on --sole-writer --results \"$folder\"");
  if (!options.own_cache) add("--cache \"$cache\"");
  if (!options.own_jobs) add("--jobs \"${SLURM_CPUS_ON_NODE:-1}\"");
  return fmt::format(
      R"(#!/bin/sh
# Written by `assay slurm` for the array {id}. One task is one shard.
set -u
shard=$SLURM_ARRAY_TASK_ID
folder={shards}/$(printf %04d "$shard")
marks={marks}
{cache}
# A mark is there whole or not at all.
mark() {{
  name=$shard.$SLURM_ARRAY_JOB_ID.$1
  printf '%s\n' "$2" >"$marks/.$name.tmp" && mv "$marks/.$name.tmp" "$marks/$name"
}}

mark began "${{SLURMD_NODENAME:-$(hostname)}}"
{command}
status=$?
mark ended "$status"
exit "$status"
)",
      fmt::arg("id", array.id), fmt::arg("shards", quoted(folder.shards().string())),
      fmt::arg("marks", quoted(folder.marks().string())), fmt::arg("command", command),
      fmt::arg("cache", options.own_cache ? "" : kCache));
}

}  // namespace assay::slurm
