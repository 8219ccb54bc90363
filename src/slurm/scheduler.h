// The Slurm scheduler as the follower of an array sees it, and the commands behind it.
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

// The scheduler refused a job; what() says why.
class Refused : public Error {
 public:
  using Error::Error;
};

// The scheduler did not answer, or its answer could not be understood. It may answer later.
class Silent : public Error {
 public:
  using Error::Error;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Submits the batch's shards and returns the id of the job. Throws Refused.
  virtual std::string submit(const Batch&) = 0;
  // The job of that name, if there was one recently. Throws Silent.
  virtual std::optional<std::string> job_named(const std::string& name) = 0;
  // What is known of these jobs' tasks; some may be missing. Throws Silent.
  virtual Tasks look(const std::vector<std::string>& jobs) = 0;
  // Ends whatever has not ended of the jobs. Throws Refused.
  virtual void cancel(const std::vector<std::string>& jobs) = 0;
};

// How jobs are submitted.
struct JobOptions {
  std::vector<std::string> sbatch;  // options, "--partition=long"
  std::size_t at_once = 0;          // tasks that may run at once; 0: as many as there is room for
  std::filesystem::path folder;     // the tasks' working directory
};

// The command line that submits a batch. Pure.
std::vector<std::string> sbatch_command(const JobOptions&, const ArrayFolder&, const Batch&);

// Runs sbatch, squeue, sacct and scancel. squeue knows current jobs and those that ended in the
// last minutes; sacct, if accounting is enabled, knows how older ones ended.
class SlurmCommands final : public Scheduler {
 public:
  SlurmCommands(JobOptions options, ArrayFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  std::string submit(const Batch&) override;
  std::optional<std::string> job_named(const std::string& name) override;
  Tasks look(const std::vector<std::string>& jobs) override;
  void cancel(const std::vector<std::string>& jobs) override;

  // Why sacct is not used, in a sentence; "" if it is used.
  const std::string& without_accounting() const { return without_accounting_; }

 private:
  Tasks accounted(const std::vector<std::string>& jobs);

  JobOptions options_;
  ArrayFolder folder_;
  std::string without_accounting_;
};

}  // namespace assay::slurm
