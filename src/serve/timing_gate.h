// Which work may use the machine now: builds and checks together, or one timing alone.
//
// A waiting timing holds back work that has not begun, so that its turn comes. When it ends, the
// held-back work goes before the next timing, so neither kind can starve the other. Timings go by
// priority, then in order of arrival.
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
  // Released when the last copy is destroyed. Each call waits for its turn, and throws Stopped if
  // the thread is asked to stop during the wait (util/thread_stop.h). The gate must outlive them.
  std::shared_ptr<void> beside_others();
  std::shared_ptr<void> alone(int priority);

  // How many threads wait for their turn.
  std::size_t waiting();

 private:
  using Timing = std::pair<int, std::uint64_t>;  // negative priority, arrival

  bool may_join(std::uint64_t arrival) const;
  bool may_time(const Timing&) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t admitted_ = 0;  // arrivals up to this one go before the next timing
  std::size_t together_ = 0;    // running together now
  bool timing_ = false;         // one is running now
  std::set<std::uint64_t> held_back_;
  std::set<Timing> timings_;  // waiting
};

}  // namespace assay::serve
