// Which work may use the machine now: builds and checks side by side, or one timing alone.
//
// A timing that waits holds back what has not begun, so that its turn comes. When it ends, the work
// that was held back goes before the next timing, so neither kind can starve the other. Timings
// come by priority, then in order of arrival.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace assay::serve {

// Thread-safe. A thread holds one at a time.
class TimingGate {
 public:
  // Released when the last copy goes. Each waits for its turn, and throws Stopped where the thread
  // is asked to end during the wait (util/thread_stop.h). The gate must outlive them.
  std::shared_ptr<void> beside_others();
  std::shared_ptr<void> alone(int priority);

 private:
  using Timing = std::pair<int, std::uint64_t>;  // negative priority, arrival

  bool may_join(std::uint64_t arrival) const;
  bool may_time(const Timing&) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t admitted_ = 0;  // who arrived until then goes before the next timing
  std::size_t together_ = 0;    // that run now
  bool timing_ = false;         // one runs now
  std::set<std::uint64_t> held_back_;
  std::set<Timing> timings_;  // that wait
};

}  // namespace assay::serve
