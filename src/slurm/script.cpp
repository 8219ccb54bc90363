#include "slurm/script.h"

#include <fmt/format.h>

#include "util/shell.h"

namespace assay::slurm {

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
cache=${{TMPDIR:-/tmp}}/assay-cache-$(id -u)

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
      fmt::arg("marks", quoted(folder.marks().string())), fmt::arg("command", command));
}

}  // namespace assay::slurm
