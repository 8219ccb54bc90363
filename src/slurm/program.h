// A program of the scheduler, such as sbatch: what it printed and how it ended.
#pragma once

#include <string>
#include <vector>

namespace assay::slurm {

struct Printed {
  int status = 0;  // of exit(); 128 + the signal that killed it
  std::string out, err;
};

// Runs a command to its end; the first word is looked for on the PATH. A stop that is asked for
// during the command (util/stop.h) does not end it: an order that sbatch has half taken is worse
// than a moment's wait. Throws Error when it cannot be started, and when it takes longer than
// `seconds`.
Printed run_command(const std::vector<std::string>& command, double seconds = 120);

}  // namespace assay::slurm
