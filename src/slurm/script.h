// The job script, which each task of the array runs. Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/array.h"

namespace assay::slurm {

struct ScriptOptions {
  std::vector<std::string> assay;  // the program, with --root if needed
  std::vector<std::string> run;    // options of `assay run` as the user gave them
  bool own_cache = false;          // the user chose a cache
  bool own_jobs = false;           // the user chose the number of threads
  bool own_seed = false;
};

// A POSIX shell script. Each task runs its shard in the shard's folder, continues what an earlier
// task left there, and marks its start and end; each mark is written whole or not at all. Build
// output stays on the node's own disk.
std::string job_script(const ScriptOptions&, const ArrayFolder&, const Array&);

}  // namespace assay::slurm
