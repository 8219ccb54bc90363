// The job script: what one task of the array runs. Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/array.h"

namespace assay::slurm {

struct ScriptOptions {
  std::vector<std::string> assay;  // the program, and --root where it needs that
  std::vector<std::string> run;    // options of `assay run` as the user gave them
  bool own_cache = false;          // the user named a cache
  bool own_jobs = false;           // the user said how many threads
  bool own_seed = false;
};

// A script of the POSIX shell. Each task runs its shard in the shard's folder, goes on there with
// what an earlier task left, and marks its beginning and end, each mark whole or not at all. What
// is compiled lies on the node's own disk.
std::string job_script(const ScriptOptions&, const ArrayFolder&, const Array&);

}  // namespace assay::slurm
