#include "slurm/follow.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/stop.h"

namespace assay::slurm {
namespace {

// A mark written on another node is seen late on a network file system: NFS may remember for up to
// a minute that a file did not exist.
constexpr std::size_t kUnclearLooks = 3;
constexpr double kUnclearWaits = 1.5;  // times the longest wait

constexpr double kBackOff = 1.5;

}  // namespace

Follower::Follower(Array& array, const ArrayFolder& folder, Scheduler& scheduler,
                   FollowOptions options, FollowWorld world)
    : array_(array),
      folder_(folder),
      scheduler_(scheduler),
      options_(options),
      world_(std::move(world)) {}

std::vector<std::size_t> Follower::follow() {
  begin();
  double wait = options_.first_wait;
  Count last;
  for (;;) {
    check_stop();
    Count now;
    const bool heard = look(now);
    if (const auto next = unsubmitted(); heard && !next.empty() && submit_or_defer(next, now)) {
      now.failed -= next.size();
      now.waiting += next.size();
    }
    if (heard) world_.looked(now);
    if (heard && now.waiting + now.running == 0) break;
    wait = heard && now != last ? options_.first_wait
                                : std::min(options_.longest_wait, wait * kBackOff);
    if (heard) last = now;
    world_.wait(wait);
  }
  std::vector<std::size_t> failed;
  for (std::size_t shard = 1; shard <= array_.shards; ++shard)
    if (!array_.is_done(shard)) failed.push_back(shard);
  return failed;
}

// A process that was killed between sbatch and recording the job has left a job that nobody
// follows. Calling again after failures means that the failed shards are to be retried.
void Follower::begin() {
  for (Batch& batch : array_.batches) {
    if (!batch.job.empty()) continue;
    if (const auto job = job_of(batch)) {
      batch.job = *job;
      world_.say(fmt::format("found job {}, which was submitted and not noted", *job));
    }
  }
  std::erase_if(array_.batches, [](const Batch& b) { return b.job.empty(); });
  for (Failure& failure : array_.failures) {
    if (!array_.task_of(failure.task.shard) && !array_.is_done(failure.task.shard))
      failure.counts = false;
  }
  folder_.write(array_);
}

// Waits until the scheduler answers.
std::optional<std::string> Follower::job_of(const Batch& batch) {
  for (bool told = false;; told = true) {
    try {
      return scheduler_.job_named(batch.name);
    } catch (const Silent& silence) {
      if (!told) world_.say(fmt::format("{}; asking again", silence.what()));
      check_stop();
      world_.wait(options_.longest_wait);
    }
  }
}

std::vector<std::size_t> Follower::unsubmitted() const {
  std::vector<std::size_t> shards;
  for (std::size_t shard = 1; shard <= array_.shards; ++shard) {
    if (!array_.is_done(shard) && !array_.task_of(shard) &&
        array_.failures_of(shard) <= options_.resubmit &&
        std::ranges::find(cancelled_, shard) == cancelled_.end())
      shards.push_back(shard);
  }
  return shards;
}

// A limit on jobs, or a scheduler restart, may pass: as long as other tasks are at work, submission
// is retried at the next look.
bool Follower::submit_or_defer(const std::vector<std::size_t>& shards, const Count& now) {
  try {
    submit(shards);
    refused_ = false;
    return true;
  } catch (const Refused& refusal) {
    if (now.waiting + now.running == 0) throw;
    if (!refused_) world_.say(fmt::format("{}; trying again", refusal.what()));
    refused_ = true;
    return false;
  }
}

void Follower::submit(const std::vector<std::size_t>& shards) {
  Batch batch{fmt::format("assay-{}-{}", array_.id, array_.batches.size() + 1), "", shards,
              array_.nodes_to_avoid(shards)};
  const auto try_it = [&] {
    array_.batches.push_back(batch);
    folder_.write(array_);
    try {
      array_.batches.back().job = scheduler_.submit(batch);
    } catch (const Refused&) {
      array_.batches.pop_back();
      folder_.write(array_);
      throw;
    }
    folder_.write(array_);
  };
  try {
    try_it();
  } catch (const Refused& refused) {
    if (batch.excluded.empty()) throw;
    world_.say(fmt::format("{}; trying without --exclude={}", refused.what(),
                           fmt::join(batch.excluded, ",")));
    batch.excluded.clear();
    try_it();
  }
  const Batch& submitted = array_.batches.back();
  world_.say(fmt::format("submitted {} as job {}{}", indices(shards), submitted.job,
                         submitted.excluded.empty()
                             ? ""
                             : fmt::format(", not on {}", fmt::join(submitted.excluded, ", "))));
}

bool Follower::look(Count& count) {
  Tasks tasks;
  try {
    tasks = scheduler_.look(array_.jobs());
  } catch (const Silent& silence) {
    if (!silent_) world_.say(fmt::format("{}; asking again", silence.what()));
    silent_ = true;
    return false;
  }
  if (silent_) world_.say("Slurm answers again");
  silent_ = false;
  for (std::size_t shard = 1; shard <= array_.shards; ++shard) {
    const auto task = array_.task_of(shard);
    if (array_.is_done(shard)) {
      ++count.done;
    } else if (!task) {
      ++count.failed;
    } else {
      const auto seen = tasks.find(*task);
      const auto marks = folder_.marks_of(*task);
      take(shard, *task,
           judge(seen == tasks.end() ? std::nullopt : std::optional(seen->second), marks), count);
    }
  }
  return true;
}

void Follower::take(std::size_t shard, const TaskId& task, const Judgement& judgement,
                    Count& count) {
  Judgement j = judgement;
  if (j.standing == Standing::unclear) {
    Unclear& unclear = unclear_[task];
    if (unclear.looks++ == 0) unclear.since = world_.seconds();
    if (unclear.looks < kUnclearLooks ||
        world_.seconds() - unclear.since < kUnclearWaits * options_.longest_wait) {
      ++count.running;
      return;
    }
    j.standing = Standing::failed;
    j.reason = "it is over and left no mark";
    j.avoid_node = true;
  } else {
    unclear_.erase(task);
  }
  switch (j.standing) {
    case Standing::waiting: ++count.waiting; return;
    case Standing::running: ++count.running; return;
    case Standing::done:
      ++count.done;
      array_.done.push_back(shard);
      folder_.write(array_);
      world_.done(shard);
      return;
    case Standing::cancelled:
      if (std::ranges::find(array_.cancelled, task.job) == array_.cancelled.end())
        cancelled_.push_back(shard);
      [[fallthrough]];
    case Standing::failed:
    case Standing::unclear: fail(task, j);
  }
  ++count.failed;
}

void Follower::fail(const TaskId& task, const Judgement& j) {
  const bool asked = std::ranges::find(array_.cancelled, task.job) != array_.cancelled.end();
  array_.failures.push_back({task, j.reason, j.node, j.avoid_node && !asked, !asked});
  folder_.write(array_);
  world_.say(fmt::format("shard {} failed{}: {}; its log: {}", task.shard,
                         j.node.empty() ? "" : " on " + j.node, j.reason,
                         folder_.log(task).string()));
}

// Cancelled tasks may take a while to end. They are followed like the others, and only replaced
// then.
void Follower::cancel() {
  std::vector<std::string> jobs = array_.jobs();
  std::erase_if(jobs, [&](const std::string& job) {
    for (std::size_t shard = 1; shard <= array_.shards; ++shard) {
      const auto task = array_.task_of(shard);
      if (task && task->job == job && !array_.is_done(shard)) return false;
    }
    return true;
  });
  if (jobs.empty()) return;
  // Noted first: scancel may fail after it has cancelled some.
  array_.cancelled.insert(array_.cancelled.end(), jobs.begin(), jobs.end());
  folder_.write(array_);
  scheduler_.cancel(jobs);
}

}  // namespace assay::slurm
