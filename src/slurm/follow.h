// Follows a job array to its end: submits, checks and resubmits its tasks.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "slurm/array.h"
#include "slurm/scheduler.h"

namespace assay::slurm {

struct FollowOptions {
  std::size_t resubmit = 1;  // times that a shard is resubmitted
  double first_wait = 2;     // seconds between looks, initially; then longer and longer
  double longest_wait = 60;
};

struct Count {
  std::size_t waiting = 0, running = 0, done = 0, failed = 0;
  bool operator==(const Count&) const = default;
};

// What the follower needs from outside, and whom it notifies.
struct FollowWorld {
  std::function<double()> seconds;           // of a monotonic clock
  std::function<void(double)> wait;          // for that many seconds; throws Stopped on request
  std::function<void(const Count&)> looked;  // after each look
  std::function<void(std::size_t shard)> done;
  std::function<void(const std::string&)> say;  // prints one line
};

class Follower {
 public:
  // All arguments must outlive it. `array` is as read from the folder, or new.
  Follower(Array& array, const ArrayFolder& folder, Scheduler& scheduler, FollowOptions options,
           FollowWorld world);

  // Returns when every shard is done or has failed too often; the result is those that failed. Each
  // step is recorded in array.json before the next, so that a command killed here can be repeated.
  // Throws Refused if nothing can be submitted and nothing is at work. A shard is never given to a
  // second task before the scheduler has said that the first is over.
  std::vector<std::size_t> follow();

  // Cancels what has not ended, so that following again resubmits it.
  void cancel();

 private:
  void begin();
  std::optional<std::string> job_of(const Batch&);
  void submit(const std::vector<std::size_t>& shards);
  bool submit_or_defer(const std::vector<std::size_t>& shards, const Count& now);
  bool look(Count& count);  // false if the scheduler was silent
  void take(std::size_t shard, const TaskId&, const Judgement&, Count& count);
  void fail(const TaskId&, const Judgement&);
  std::vector<std::size_t> unsubmitted() const;

  Array& array_;
  const ArrayFolder& folder_;
  Scheduler& scheduler_;
  FollowOptions options_;
  FollowWorld world_;
  struct Unclear {
    double since = 0;
    std::size_t looks = 0;
  };
  std::map<TaskId, Unclear> unclear_;
  std::vector<std::size_t> cancelled_;  // by a person; not resubmitted here
  bool silent_ = false, refused_ = false;
};

}  // namespace assay::slurm
