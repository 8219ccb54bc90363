// Slurm as the follower of an array sees it, and its commands.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "slurm/array.h"
#include "slurm/task.h"

namespace assay::slurm {

// The scheduler said no to a job, for the reason in what().
class Refused : public Error {
 public:
  using Error::Error;
};

// The scheduler did not answer, or not so that it can be understood; it may do so later.
class Silent : public Error {
 public:
  using Error::Error;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Submits the batch's shards and returns the id of the job. Throws Refused.
  virtual std::string submit(const Batch&) = 0;
  // The job of that name, if there was one lately. Throws Silent.
  virtual std::optional<std::string> job_named(const std::string& name) = 0;
  // What is known of the tasks of these jobs; some may be missing. Throws Silent.
  virtual Tasks look(const std::vector<std::string>& jobs) = 0;
  // Ends what of the jobs has not ended. Throws Refused.
  virtual void cancel(const std::vector<std::string>& jobs) = 0;
};

// How jobs are submitted.
struct JobOptions {
  std::vector<std::string> sbatch;  // options, "--partition=long"
  std::size_t at_once = 0;          // tasks that may run at a time; 0: as many as there is room for
  std::filesystem::path folder;     // where the tasks begin
};

// The command line that submits a batch. Pure.
std::vector<std::string> sbatch_command(const JobOptions&, const ArrayFolder&, const Batch&);

// Asks sbatch, squeue, sacct and scancel. squeue knows what is and what ended in the last minutes;
// sacct, where jobs are accounted for, how those ended that squeue has forgotten.
class SlurmCommands final : public Scheduler {
 public:
  SlurmCommands(JobOptions options, ArrayFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  std::string submit(const Batch&) override;
  std::optional<std::string> job_named(const std::string& name) override;
  Tasks look(const std::vector<std::string>& jobs) override;
  void cancel(const std::vector<std::string>& jobs) override;

  // Why sacct is not asked, a sentence; "" where it is.
  const std::string& without_accounting() const { return without_accounting_; }

 private:
  Tasks accounted(const std::vector<std::string>& jobs);

  JobOptions options_;
  ArrayFolder folder_;
  std::string without_accounting_;
};

}  // namespace assay::slurm
