// The state of a job array, kept between calls of `assay slurm`: array.json in the array's folder,
// on the shared file system.
//
//   RESULTS/slurm/ID/array.json   this
//                    job.sh       what each task runs
//                    costs/       the board that says what each answer costs, as it was
//                    shards/0001  the results folder of a shard: one writer, the shard's task
//                    marks/       1.123.began, 1.123.ended: of shard 1 as a task of job 123
//                    logs/        1.123.log
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/task.h"

namespace assay::slurm {

// One call of sbatch.
struct Batch {
  std::string name;  // of the job; no other batch has it
  std::string job;   // "": not known to have been submitted
  std::vector<std::size_t> shards;
  std::vector<std::string> excluded;  // nodes
};

// A task that did not end well.
struct Failure {
  TaskId task;
  std::string reason, node;
  bool avoid_node = false;
  bool counts = true;  // towards --resubmit; false once the user asks for another try
};

struct Array {
  std::string id;
  std::vector<std::string> command;  // the arguments, to recognise the same command
  std::size_t shards = 0;
  std::size_t answers = 0;  // in all shards
  std::uint64_t seed = 0;
  bool finished = false;  // and merged
  std::vector<Batch> batches;
  std::vector<Failure> failures;
  std::vector<std::size_t> done;
  std::vector<std::string>
      cancelled;  // jobs cancelled by us: what had not ended of them is still wanted

  // The task that has the shard now. Absent before it was submitted and after it failed.
  std::optional<TaskId> task_of(std::size_t shard) const;
  bool is_done(std::size_t shard) const;
  std::size_t failures_of(std::size_t shard) const;  // those that count
  std::vector<std::string> jobs() const;             // that were submitted
  std::vector<std::string> nodes_to_avoid(const std::vector<std::size_t>& shards) const;
};

class ArrayFolder {
 public:
  explicit ArrayFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path script() const { return folder_ / "job.sh"; }
  std::filesystem::path costs() const { return folder_ / "costs"; }
  std::filesystem::path shards() const { return folder_ / "shards"; }
  std::filesystem::path shard(std::size_t) const;
  std::filesystem::path marks() const { return folder_ / "marks"; }
  std::filesystem::path logs() const { return folder_ / "logs"; }
  std::filesystem::path log(const TaskId&) const;

  Marks marks_of(const TaskId&) const;
  Array read() const;  // throws Error naming the file
  void write(const Array&) const;

 private:
  std::filesystem::path folder_;
};

// The newest unfinished array below RESULTS/slurm.
std::optional<ArrayFolder> unfinished_array(const std::filesystem::path& results);

}  // namespace assay::slurm
