// Runs a program of the scheduler, such as sbatch: its output and exit status.
#pragma once

#include <string>
#include <vector>

#include "assay/error.h"

namespace assay::slurm {

// A command did not end in time.
class Late : public Error {
 public:
  using Error::Error;
};

struct Printed {
  int status = 0;  // of exit(); 128 + the signal that killed it
  std::string out, err;
};

// Runs a command to its end; the first word is looked up on the PATH. A request to stop during the
// command (util/stop.h) does not kill it: a submission that sbatch has half processed is worse than
// a short wait. Throws Error if the command cannot be started, and Late if it takes longer than
// `seconds`.
Printed run_command(const std::vector<std::string>& command, double seconds = 120);

}  // namespace assay::slurm
