// One task of a job array, according to the scheduler and the task itself. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::slurm {

struct TaskId {
  std::string job;  // of the array
  std::size_t shard = 0;
  auto operator<=>(const TaskId&) const = default;
};

// What the scheduler reports.
struct TaskSeen {
  std::string state;  // in one word: "RUNNING", "NODE_FAIL"
  std::string node;   // "" if it has none yet, or no longer
  bool operator==(const TaskSeen&) const = default;
};
using Tasks = std::map<TaskId, TaskSeen>;

// What the job script left in the shared folder.
struct Marks {
  std::string node;          // on which it started; "" if it has not
  std::optional<int> ended;  // the exit status of `assay run`
};

// The id in the output of `sbatch --parsable`, "123" or "123;cluster". Throws Error for anything
// else.
std::string job_from(std::string_view printed);

// Parses lines of JOB_SHARD|STATE|NODES, as sacct prints them, or JOB|SHARD|STATE|NODES, as squeue
// does. Tasks that wait together share a line, "123_[1-3,7%2]". Lines that belong to none of
// `jobs`, or to no array task, are left out. Throws an Error naming the line if it has another
// form.
Tasks tasks_from(std::string_view printed, const std::vector<std::string>& jobs);

// "1-3,7" for the sorted 1, 2, 3 and 7, and the inverse. Throws Error for anything else.
std::string indices(const std::vector<std::size_t>&);
std::vector<std::size_t> indices_from(std::string_view);

enum class Standing {
  waiting,
  running,
  done,
  failed,
  cancelled,  // by a person: not to be resubmitted unasked
  unclear     // apparently over without a word: the mark may still be on its way
};

struct Judgement {
  Standing standing = Standing::unclear;
  std::string reason{};  // of failed and cancelled tasks: "NODE_FAIL"
  std::string node{};    // where it ran, or "" if unknown
  // Whether to retry it on another node.
  bool avoid_node = false;
};

// `seen`: absent if the scheduler does not know the task, or no longer does.
Judgement judge(const std::optional<TaskSeen>& seen, const Marks&);

}  // namespace assay::slurm
