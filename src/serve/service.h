// Tasks from their arrival to their result: the queue, the threads that grade, what is remembered.
//
// The folder of tasks is the truth: a task is on disk before its client hears of it, and its result
// before anybody can read it. After a restart tasks that waited wait again; one that was being
// graded when the server was killed is 'lost', since it may be what killed it. A request to stop
// (util/stop.h) puts what is being graded back among those that wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "serve/fair_queue.h"
#include "serve/grade_request.h"
#include "serve/metrics.h"
#include "serve/task.h"
#include "serve/task_store.h"
#include "spec/spec.h"

namespace assay::serve {

struct ServiceSettings {
  std::size_t jobs = 1;  // tasks that are graded at once
  std::size_t most_queued = 1000;
  std::size_t kept = 10'000;  // ended tasks, and with them the cache of results
  std::string grader{};       // who grades, for the cache: version, machine, compiler
  bool has_cuda = false;      // whether answers in CUDA can be graded
};

// Gives what `assay grade --json` prints, and tells of each stage that begins. Throws Error for a
// fault of the harness, Stopped where check_stop() asks for the end. Called by several threads.
using Grade =
    std::function<Json(const GradeRequest&, const std::function<void(check::Stage)>& on_stage)>;

// Thread-safe.
class Service {
 public:
  // Takes up what the folder holds; grades from start() on. All must outlive it.
  Service(TaskStore&, std::span<const ChallengeSpec>, Metrics&, Grade, ServiceSettings);
  ~Service() { stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start();
  // Takes no more tasks, ends those that run, which wait on disk from then on, and returns when
  // they have ended. Clients that wait for a task are answered.
  void stop();

  // All of them or none: throws ApiError as read_request() does, 429 where there is no room, 503
  // while it stops. `who` takes turns with others: a token or an address.
  std::vector<std::string> submit(const std::vector<Json>& requests, const std::string& who);
  // The task's envelope, once it has ended or after so many seconds. Throws ApiError 404.
  Json wait(const std::string& id, double seconds);
  // What waits ends at once, what runs at its next case. Throws ApiError 404, and 409 for a task
  // that has ended.
  Json cancel(const std::string& id);

  Json health() const;
  std::string metrics() const;

 private:
  struct Entry {
    Task task;  // without its result
    std::string stage{};
    double arrived = 0;  // of the steady clock
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  struct Asked {
    GradeRequest request;
    std::string key;  // "" where no result may be shared
  };

  void take_up();
  void add(Task);  // among those in memory
  std::vector<Asked> check_all(const std::vector<Json>& requests) const;
  Task new_task(const Asked&, const Json& request, const std::string& who);
  void reserve_room(std::size_t n);
  int retry_after() const;
  bool answer_from_cache(Task&, const std::string& key);
  void work();
  void grade_one(const std::string& id);
  void run(Task&, const std::shared_ptr<std::atomic<bool>>& cancelled);
  // Saves how it ended, then lets everybody know.
  void end(Task, TaskStatus, const std::string& why = "");
  void put_back(Task);
  void remember(const Task&);
  void expire_waiting();

  TaskStore& store_;
  const std::span<const ChallengeSpec> specs_;
  Metrics& metrics_;
  const Grade grade_;
  const ServiceSettings settings_;

  mutable std::mutex mutex_;
  std::condition_variable work_, changed_;
  std::atomic<bool> stopping_{false};
  std::map<std::string, Entry> tasks_;
  FairQueue queue_;
  std::size_t reserved_ = 0;  // room for tasks that are being written
  std::size_t running_ = 0;
  double seconds_a_task_ = 5;                   // about, of those graded lately
  std::deque<std::string> ended_;               // in that order
  std::map<std::string, std::string> results_;  // key -> the task that has it
  std::uint64_t arrivals_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace assay::serve
