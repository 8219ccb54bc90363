// Follows a job array to its end: what is submitted, looked at, submitted again.
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
  std::size_t resubmit = 1;  // times that a shard is submitted again
  double first_wait = 2;     // seconds between looks: at first, then longer and longer
  double longest_wait = 60;
};

struct Count {
  std::size_t waiting = 0, running = 0, done = 0, failed = 0;
  bool operator==(const Count&) const = default;
};

// What of the world it needs, and whom it tells.
struct FollowWorld {
  std::function<double()> seconds;           // of a clock that never jumps
  std::function<void(double)> wait;          // for so many seconds; throws Stopped on request
  std::function<void(const Count&)> looked;  // after each look
  std::function<void(std::size_t shard)> done;
  std::function<void(const std::string&)> say;  // a line
};

class Follower {
 public:
  // All must outlive it. `array` is as it was read from the folder or made anew.
  Follower(Array& array, const ArrayFolder& folder, Scheduler& scheduler, FollowOptions options,
           FollowWorld world);

  // Returns when every shard is done or has failed too often, those that failed. Each step is in
  // array.json before the next, so that a command killed here can do it again. Throws Refused when
  // nothing can be submitted and nothing is at work. A shard is never given to a second task before
  // the scheduler has said that the first is over.
  std::vector<std::size_t> follow();

  // Cancels what has not ended, so that following again submits it again.
  void cancel();

 private:
  void begin();
  void submit(const std::vector<std::size_t>& shards);
  bool submit_or_defer(const std::vector<std::size_t>& shards, const Count& now);
  bool look(Count& count);  // false when the scheduler was silent
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
  std::vector<std::size_t> cancelled_;  // by a person; not submitted again here
  bool silent_ = false, refused_ = false;
};

}  // namespace assay::slurm
