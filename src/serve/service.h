// Tasks from arrival to result: the queue, the grading threads, and what is remembered.
//
// The folder of tasks is authoritative: a task is on disk before its client hears of it, and its
// result before anybody can read it. After a restart, waiting tasks wait again. A task that was
// being graded when the server was killed becomes 'lost', since it may be what killed the server. A
// request to stop (util/stop.h) puts tasks that are being graded back in the queue.
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
  std::size_t jobs = 1;  // tasks graded at once
  std::size_t most_queued = 1000;
  std::size_t kept = 10'000;  // finished tasks kept, and with them the cache of results
  std::string grader{};       // identifies the grader for the cache: version, machine, compiler
  bool has_cuda = false;      // whether answers in CUDA can be graded
};

// Returns what `assay grade --json` prints, and reports each stage when it begins. Throws Error for
// a fault of the harness, and Stopped if check_stop() asks to stop. Called from several threads.
using Grade =
    std::function<Json(const GradeRequest&, const std::function<void(check::Stage)>& on_stage)>;

// Thread-safe.
class Service {
 public:
  // Takes over the folder's tasks; grades them once start() is called. All arguments must outlive
  // it.
  Service(TaskStore&, std::span<const ChallengeSpec>, Metrics&, Grade, ServiceSettings);
  ~Service() { stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start();
  // Accepts no more tasks, stops the running ones, which then wait on disk, and returns when they
  // have stopped. Clients that wait for a task get an answer.
  void stop();

  // Accepts all tasks or none. Throws ApiError as read_request() does, 429 if there is no room, 503
  // while stopping. `who` takes turns with others: a token or an address.
  std::vector<std::string> submit(const std::vector<Json>& requests, const std::string& who);
  // The task's envelope, once the task has ended or after `seconds`. Throws ApiError 404.
  Json wait(const std::string& id, double seconds);
  // Ends a waiting task at once, a running one at its next case. Throws ApiError 404, and 409 for a
  // task that has ended.
  Json cancel(const std::string& id);

  Json health() const;
  std::string metrics() const;

 private:
  struct Entry {
    Task task;  // without its request and its result
    std::string stage{};
    double arrived = 0;  // on the steady clock
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  struct Asked {
    GradeRequest request;
    std::string key;  // "" if no result may be shared
  };

  void take_up();
  std::string key_of(const GradeRequest&) const;
  void take_key_of_today(Task&) const;
  void add(Task);  // to those in memory
  std::vector<Asked> check_all(const std::vector<Json>& requests) const;
  Task new_task(const Asked&, const Json& request, const std::string& who);
  void reserve_room(std::size_t n);
  int retry_after() const;
  bool answer_from_cache(Task&, const std::string& key);
  void work();
  bool grade_one(const std::string& id);
  void run(Task&, const std::shared_ptr<std::atomic<bool>>& cancelled);
  // Saves how it ended, then notifies everyone.
  void end(Task, TaskStatus, const std::string& why = "");
  bool note_start(const Task&);
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
  double seconds_a_task_ = 5;                   // estimate, from recently graded tasks
  std::deque<std::string> ended_;               // in the order in which they ended
  std::map<std::string, std::string> results_;  // key -> the task that has it
  std::uint64_t arrivals_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace assay::serve
