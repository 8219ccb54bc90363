// One task of a job array: what the scheduler and the task itself say of it. Pure.
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

// What the scheduler says.
struct TaskSeen {
  std::string state;  // in one word: "RUNNING", "NODE_FAIL"
  std::string node;   // "" where there is none yet, or no more
  bool operator==(const TaskSeen&) const = default;
};
using Tasks = std::map<TaskId, TaskSeen>;

// What the job script left in the shared folder.
struct Marks {
  std::string node;          // on which it began; "" as long as it has not
  std::optional<int> ended;  // the exit status of `assay run`
};

// The id in what `sbatch --parsable` prints, "123" or "123;cluster". Throws Error for anything
// else.
std::string job_from(std::string_view printed);

// Lines of JOB_SHARD|STATE|NODES, as sacct prints them, or of JOB|SHARD|STATE|NODES, as squeue
// does. Tasks that wait together stand in one, "123_[1-3,7%2]". What is none of `jobs`, and what is
// no task of an array, is left out. Throws Error, naming the line, for what has another form.
Tasks tasks_from(std::string_view printed, const std::vector<std::string>& jobs);

// "1-3,7" of 1, 2, 3 and 7, which are sorted; and back. Throws Error for anything else.
std::string indices(const std::vector<std::size_t>&);
std::vector<std::size_t> indices_from(std::string_view);

enum class Standing {
  waiting,
  running,
  done,
  failed,
  cancelled,  // by a person: not to be submitted again unasked
  unclear     // over, by all accounts, without a word: the mark may still be on its way
};

struct Judgement {
  Standing standing = Standing::unclear;
  std::string reason{};  // of failed and cancelled: "NODE_FAIL"
  std::string node{};    // where it ran, "" if that is not known
  // Whether it is better tried elsewhere.
  bool avoid_node = false;
};

// `seen`: nothing where the scheduler does not know the task, or no more.
Judgement judge(const std::optional<TaskSeen>& seen, const Marks&);

}  // namespace assay::slurm
