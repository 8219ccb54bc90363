#include "serve/timing_gate.h"

#include <chrono>

#include "util/stop.h"

namespace assay::serve {
namespace {

// How soon a waiting thread notices a request to stop.
constexpr std::chrono::milliseconds kStopLook{50};

// Puts `self` in the set of waiting threads for the object's lifetime.
template <class T>
class Waiting {
 public:
  Waiting(std::set<T>& all, const T& self) : all_(all), self_(self) { all_.insert(self_); }
  ~Waiting() { all_.erase(self_); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::set<T>& all_;
  T self_;
};

// Waits until `ready` is true. A thread that gives up wakes the others, which may have waited for
// it.
template <class Ready>
void wait_for_turn(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                   Ready ready) {
  try {
    check_stop();
    while (!ready()) {
      changed.wait_for(lock, kStopLook);
      check_stop();
    }
  } catch (...) {
    changed.notify_all();
    throw;
  }
}

}  // namespace

bool TimingGate::may_join(std::uint64_t arrival) const {
  return !timing_ && (timings_.empty() || arrival <= admitted_);
}

bool TimingGate::may_time(const Timing& timing) const {
  const bool others_first = !held_back_.empty() && *held_back_.begin() <= admitted_;
  return !timing_ && together_ == 0 && !others_first && *timings_.begin() == timing;
}

std::size_t TimingGate::waiting() {
  const std::lock_guard lock(mutex_);
  return held_back_.size() + timings_.size();
}

std::shared_ptr<void> TimingGate::beside_others() {
  std::unique_lock lock(mutex_);
  const std::uint64_t arrival = ++arrivals_;
  {
    const Waiting waiting(held_back_, arrival);
    wait_for_turn(lock, changed_, [&] { return may_join(arrival); });
  }
  ++together_;
  changed_.notify_all();
  return {nullptr, [this](void*) {
            const std::lock_guard released(mutex_);
            --together_;
            changed_.notify_all();
          }};
}

std::shared_ptr<void> TimingGate::alone(int priority) {
  std::unique_lock lock(mutex_);
  const Timing timing{-priority, ++arrivals_};
  {
    const Waiting waiting(timings_, timing);
    wait_for_turn(lock, changed_, [&] { return may_time(timing); });
  }
  timing_ = true;
  return {nullptr, [this](void*) {
            const std::lock_guard released(mutex_);
            timing_ = false;
            admitted_ = arrivals_;
            changed_.notify_all();
          }};
}

}  // namespace assay::serve
