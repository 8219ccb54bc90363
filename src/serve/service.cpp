#include "serve/service.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "assay/error.h"
#include "records/lookup.h"
#include "serve/api_error.h"
#include "util/clock.h"
#include "util/stop.h"
#include "util/text.h"
#include "util/thread_stop.h"
#include "util/transient_fault.h"

namespace assay::serve {
namespace {

// How soon a waiting thread notices a request to stop.
constexpr std::chrono::milliseconds kLook{100}, kUntilRoom{1000};

std::string new_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error("the kernel gives no random numbers");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

bool is_past(std::int64_t deadline) {
  return deadline != 0 && static_cast<std::int64_t>(seconds_since_1970()) >= deadline;
}

[[noreturn]] void no_such_task(const std::string& id) {
  throw ApiError(404, "unknown_task",
                 fmt::format("there is no task '{}': it never was, or is no longer kept",
                             printable(id, 1, 40)));
}

// Whether the same request may be answered with this result: not if a harness fault was involved.
bool may_share(const Json& result) { return result.at("harness_faults").empty(); }

}  // namespace

Service::Service(TaskStore& store, std::span<const ChallengeSpec> specs, Metrics& metrics,
                 Grade grade, ServiceSettings settings)
    : store_(store),
      specs_(specs),
      metrics_(metrics),
      grade_(std::move(grade)),
      settings_(std::move(settings)) {
  take_up();
}

void Service::take_up() {
  store_.for_each([this](Task task) {
    arrivals_ = std::max(arrivals_, task.number);
    if (task.status == TaskStatus::running) {
      task.status = TaskStatus::lost;
      task.why = "the server was killed while it graded this: send it again";
      task.finished_at = utc_now();
      task.request = nullptr;
      store_.save(task);
    }
    if (task.status == TaskStatus::queued) {
      take_key_of_today(task);
      queue_.push(task.id, task.owner, task.priority);
    }
    if (has_ended(task.status)) remember(task);
    add(std::move(task));
  });
}

std::string Service::key_of(const GradeRequest& request) const {
  if (!request.use_cache) return "";
  return cache_key(request, spec_named(specs_, request.answer.challenge), settings_.grader);
}

// An earlier version, or another compiler, may have accepted the task.
void Service::take_key_of_today(Task& task) const {
  try {
    task.key = key_of(read_request(task.request, specs_));
  } catch (const std::exception&) {  // grading it meets the same fault and reports it
    task.key.clear();
  }
}

// Requests stay on disk until they are graded: a thousand of them may be larger than the memory.
void Service::add(Task task) {
  const std::string id = task.id;
  task.request = nullptr;
  tasks_.insert_or_assign(id, Entry{.task = std::move(task), .arrived = steady_seconds()});
}

void Service::start() {
  for (std::size_t i = 0; i < settings_.jobs; ++i) threads_.emplace_back([this] { work(); });
}

void Service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  changed_.notify_all();
  threads_.clear();  // joins
}

std::vector<Service::Asked> Service::check_all(const std::vector<Json>& requests) const {
  std::vector<Asked> all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string where = requests.size() > 1 ? fmt::format("tasks/{}: ", i) : "";
    Asked asked{read_request(requests[i], specs_, where), ""};
    if (asked.request.answer.language == Language::cuda && !settings_.has_cuda) {
      throw ApiError(422, "no_cuda",
                     where + "there is no nvcc here, so answers in CUDA cannot be graded");
    }
    asked.key = key_of(asked.request);
    all.push_back(std::move(asked));
  }
  return all;
}

int Service::retry_after() const {
  constexpr double kLongest = 300;
  const double seconds = seconds_a_task_ / static_cast<double>(settings_.jobs);
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, kLongest));
}

void Service::reserve_room(std::size_t n) {
  std::unique_lock lock(mutex_);
  if (stopping_) throw ApiError(503, "stopping", "the server is about to end", retry_after());
  if (queue_.size() + reserved_ + n > settings_.most_queued) {
    lock.unlock();
    expire_waiting();
    lock.lock();
  }
  if (queue_.size() + reserved_ + n > settings_.most_queued) {
    throw ApiError(429, "queue_full",
                   fmt::format("{} tasks wait, and {} may: try again later",
                               queue_.size() + reserved_, settings_.most_queued),
                   retry_after());
  }
  reserved_ += n;
}

Task Service::new_task(const Asked& asked, const Json& request, const std::string& who) {
  Task task;
  task.id = new_id();
  {
    const std::lock_guard lock(mutex_);
    task.number = ++arrivals_;
  }
  task.owner = who + "/" + asked.request.client;
  task.client = asked.request.client;
  task.challenge = asked.request.answer.challenge;
  task.language = asked.request.answer.language == Language::cpp ? "cpp" : "cuda";
  task.priority = asked.request.priority;
  task.created_at = utc_now();
  if (asked.request.deadline_s) {
    task.deadline = static_cast<std::int64_t>(seconds_since_1970()) +
                    std::max<std::int64_t>(1, std::llround(*asked.request.deadline_s));
  }
  task.key = asked.key;
  task.request = request;
  return task;
}

bool Service::answer_from_cache(Task& task, const std::string& key) {
  if (key.empty()) return false;
  std::string earlier;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = results_.find(key); found != results_.end()) earlier = found->second;
  }
  std::optional<Task> known;
  try {
    if (!earlier.empty()) known = store_.load(earlier);
  } catch (const Error&) {  // a damaged file is no answer: this one is graded
    const std::lock_guard lock(mutex_);
    results_.erase(key);
  }
  if (!known || known->result.is_null()) return false;
  task.result = std::move(known->result);
  task.cached = true;
  return true;
}

std::vector<std::string> Service::submit(const std::vector<Json>& requests,
                                         const std::string& who) {
  const std::vector<Asked> all = check_all(requests);
  if (all.size() > settings_.most_queued) {
    throw ApiError(422, "batch_too_large",
                   fmt::format("{} tasks in a batch, and no more than {} may ever wait: send fewer "
                               "at once",
                               all.size(), settings_.most_queued));
  }
  reserve_room(all.size());
  std::vector<Task> tasks;
  try {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Task& task = tasks.emplace_back(new_task(all[i], requests[i], who));
      const bool hit = answer_from_cache(task, task.key);
      if (!task.key.empty()) metrics_.looked_up(hit);
      if (hit) {
        task.status = TaskStatus::done;
        task.finished_at = utc_now();
        task.request = nullptr;
      }
      store_.save(task);
    }
  } catch (...) {
    for (const Task& task : tasks) store_.remove(task.id);
    const std::lock_guard lock(mutex_);
    reserved_ -= all.size();
    throw;
  }
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    reserved_ -= all.size();
    for (Task& task : tasks) {
      ids.push_back(task.id);
      task.result = nullptr;
      if (task.status == TaskStatus::queued) {
        queue_.push(task.id, task.owner, task.priority);
      } else {
        metrics_.task_ended(to_string(task.status));
        remember(task);
      }
      add(std::move(task));
    }
  }
  work_.notify_all();
  return ids;
}

// REQUIRES the lock, or that no other thread runs.
void Service::remember(const Task& task) {
  ended_.push_back(task.id);
  if (task.status == TaskStatus::done && !task.key.empty()) results_[task.key] = task.id;
  while (ended_.size() > settings_.kept) {
    const std::string oldest = std::move(ended_.front());
    ended_.pop_front();
    if (const auto entry = tasks_.find(oldest); entry != tasks_.end()) {
      const auto result = results_.find(entry->second.task.key);
      if (result != results_.end() && result->second == oldest) results_.erase(result);
      tasks_.erase(entry);
    }
    store_.remove(oldest);
  }
}

// Takes the lock itself: each task is written to disk.
void Service::expire_waiting() {
  std::vector<Task> late;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : tasks_) {
      const Task& task = entry.task;
      if (task.status == TaskStatus::queued && is_past(task.deadline) && queue_.remove(id))
        late.push_back(task);
    }
  }
  for (Task& task : late)
    end(std::move(task), TaskStatus::expired, "its deadline passed while it waited");
}

void Service::end(Task task, TaskStatus status, const std::string& why) {
  task.status = status;
  task.why = why;
  task.finished_at = utc_now();
  task.request = nullptr;
  if (status != TaskStatus::done) task.key.clear();
  try {
    store_.save(task);
  } catch (const std::exception& fault) {  // such as a full disk, which must affect no other task
    if (status == TaskStatus::done) {
      task.status = TaskStatus::failed;
      task.why = fmt::format("graded, but the result could not be kept: {}", fault.what());
      task.key.clear();
    }
  }
  task.result = nullptr;
  {
    const std::lock_guard lock(mutex_);
    metrics_.task_ended(to_string(task.status));
    Entry& entry = tasks_.at(task.id);
    entry.stage.clear();
    entry.task = task;
    remember(task);
  }
  changed_.notify_all();
}

void Service::put_back(Task task) {
  task.status = TaskStatus::queued;
  try {
    store_.save(task);
  } catch (const std::exception&) {  // stays 'running' on disk, which a restart reads as 'lost'
  }
  const std::lock_guard lock(mutex_);
  task.request = nullptr;
  queue_.push(task.id, task.owner, task.priority);
  Entry& entry = tasks_.at(task.id);
  entry.stage.clear();
  entry.task = std::move(task);
}

void Service::work() {
  for (;;) {
    std::string id;
    {
      std::unique_lock lock(mutex_);
      while (!stopping_ && stop_signal() == 0 && queue_.size() == 0) work_.wait_for(lock, kLook);
      if (stopping_ || stop_signal() != 0) return;
      id = *queue_.pop();
      Entry& entry = tasks_.at(id);
      entry.task.status = TaskStatus::running;
      ++running_;
    }
    const bool had_room = grade_one(id);
    std::unique_lock lock(mutex_);
    --running_;
    if (!had_room) work_.wait_for(lock, kUntilRoom, [&] { return stopping_.load(); });
  }
}

// False if there is no room to note that it runs: then it waits again.
bool Service::grade_one(const std::string& id) {
  Task task;
  std::shared_ptr<std::atomic<bool>> cancelled;
  {
    const std::lock_guard lock(mutex_);
    task = tasks_.at(id).task;
    cancelled = tasks_.at(id).cancelled;
  }
  try {
    if (std::optional<Task> stored = store_.load(id)) task.request = std::move(stored->request);
    if (!note_start(task)) return false;
    // The same answer may have been graded since this one arrived.
    if (answer_from_cache(task, task.key)) {
      end(task, TaskStatus::done);
    } else {
      run(task, cancelled);
    }
  } catch (const Stopped&) {
    if (*cancelled) {
      end(task, TaskStatus::cancelled);
    } else if (stopping_ || stop_signal() != 0) {
      put_back(task);
    } else {
      end(task, TaskStatus::expired, "its deadline passed while it was graded");
    }
  } catch (const std::exception& fault) {
    end(task, TaskStatus::failed, printable(fault.what(), 3));
  }
  return true;
}

// A full disk would fail every task that waits, one after another: they wait until it has room.
bool Service::note_start(const Task& task) {
  try {
    store_.save(task);
  } catch (const TransientFault&) {
    put_back(task);
    return false;
  }
  const std::lock_guard lock(mutex_);
  metrics_.waited(steady_seconds() - tasks_.at(task.id).arrived);
  return true;
}

void Service::run(Task& task, const std::shared_ptr<std::atomic<bool>>& cancelled) {
  const ThreadStop stop([&] { return stopping_ || cancelled->load() || is_past(task.deadline); });
  check_stop();
  const GradeRequest request = read_request(task.request, specs_);
  const double begun = steady_seconds();
  Json result = grade_(request, [&](check::Stage stage) {
    check_stop();
    const std::lock_guard lock(mutex_);
    tasks_.at(task.id).stage = to_string(stage);
  });
  {
    constexpr double kOfTheLast = 0.2;
    const std::lock_guard lock(mutex_);
    seconds_a_task_ += kOfTheLast * (steady_seconds() - begun - seconds_a_task_);
  }
  metrics_.graded(result);
  if (result.at("verdict") == code(Verdict::harness_error))
    return end(task, TaskStatus::failed, result.at("build_log").get<std::string>());
  if (!may_share(result)) task.key.clear();
  task.result = std::move(result);
  end(task, TaskStatus::done);
}

Json Service::wait(const std::string& id, double seconds) {
  const double until = steady_seconds() + seconds;
  Task task;
  std::string stage;
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto entry = tasks_.find(id);
      if (entry == tasks_.end()) no_such_task(id);
      if (entry->second.task.status == TaskStatus::queued && is_past(entry->second.task.deadline)) {
        lock.unlock();
        expire_waiting();
        lock.lock();
        entry = tasks_.find(id);
        if (entry == tasks_.end()) no_such_task(id);
      }
      const double left = until - steady_seconds();
      if (has_ended(entry->second.task.status) || left <= 0 || stopping_ || stop_signal() != 0) {
        task = entry->second.task;
        stage = entry->second.stage;
        break;
      }
      changed_.wait_for(lock, std::min<std::chrono::duration<double>>(
                                  kLook, std::chrono::duration<double>(left)));
    }
  }
  if (task.status == TaskStatus::done) {
    std::optional<Task> whole = store_.load(id);
    if (!whole) no_such_task(id);  // it was the oldest, and has just been removed
    task = std::move(*whole);
  }
  return envelope(task, stage);
}

Json Service::cancel(const std::string& id) {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = tasks_.find(id);
    if (entry == tasks_.end()) no_such_task(id);
    task = entry->second.task;
    if (has_ended(task.status)) {
      throw ApiError(409, "has_ended",
                     fmt::format("the task has ended already: {}", to_string(task.status)));
    }
    *entry->second.cancelled = true;
    if (!queue_.remove(id)) return envelope(task, entry->second.stage);
  }
  end(std::move(task), TaskStatus::cancelled);
  return wait(id, 0);
}

Json Service::health() const {
  const std::lock_guard lock(mutex_);
  Json challenges = Json::array();
  for (const ChallengeSpec& spec : specs_) challenges.push_back(spec.name);
  return {{"status", stopping_ || stop_signal() != 0 ? "stopping" : "ok"},
          {"queued", queue_.size()},
          {"running", running_},
          {"jobs", settings_.jobs},
          {"languages", settings_.has_cuda ? Json::array({"cpp", "cuda"}) : Json::array({"cpp"})},
          {"challenges", challenges}};
}

std::string Service::metrics() const {
  std::size_t queued = 0, running = 0;
  {
    const std::lock_guard lock(mutex_);
    queued = queue_.size();
    running = running_;
  }
  return metrics_.text(queued, running, settings_.jobs);
}

}  // namespace assay::serve
