#include "serve/timing_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "util/stop.h"
#include "util/thread_stop.h"

namespace assay::serve {
namespace {

void until(const std::atomic<int>& count, int value) {
  while (count < value) std::this_thread::yield();
}

void until_waiting(TimingGate& gate, std::size_t threads) {
  while (gate.waiting() < threads) std::this_thread::yield();
}

// The names of what passed, in order.
class Log {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    text_ += what + " ";
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

TEST(TimingGate, ChecksRunBesideEachOther) {
  TimingGate gate;
  const auto one = gate.beside_others();
  const auto two = gate.beside_others();
  SUCCEED() << "else this would hang";
}

TEST(TimingGate, TimingIsAlone) {
  TimingGate gate;
  std::atomic<int> inside{0}, most{0}, timings{0};
  const auto use = [&](bool alone) {
    const auto held = alone ? gate.alone(0) : gate.beside_others();
    const int now = ++inside;
    if (alone) {
      timings += now == 1 ? 1 : 100;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      timings += inside == 1 ? 0 : 100;
    } else {
      most = std::max(most.load(), now);
    }
    --inside;
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) use(t % 4 == 0);
      });
    }
  }
  EXPECT_EQ(timings, 40) << "each found nobody beside it";
}

TEST(TimingGate, AWaitingTimingHoldsBackWhatHasNotBegun) {
  TimingGate gate;
  Log log;
  auto checking = gate.beside_others();
  std::jthread timing([&] {
    const auto held = gate.alone(0);
    log.add("timing");
  });
  until_waiting(gate, 1);
  std::jthread late([&] {
    const auto held = gate.beside_others();
    log.add("check");
  });
  until_waiting(gate, 2);
  EXPECT_EQ(log.text(), "");
  checking.reset();
  timing.join();
  late.join();
  EXPECT_EQ(log.text(), "timing check ");
}

TEST(TimingGate, ChecksHeldBackGoBeforeTheNextTiming) {
  TimingGate gate;
  Log log;
  auto first = gate.alone(0);
  std::jthread check([&] {
    const auto held = gate.beside_others();
    log.add("check");
  });
  until_waiting(gate, 1);
  std::jthread second([&] {
    const auto held = gate.alone(9);
    log.add("timing");
  });
  until_waiting(gate, 2);
  first.reset();
  check.join();
  second.join();
  EXPECT_EQ(log.text(), "check timing ");
}

TEST(TimingGate, TimingsComeByPriorityThenInOrder) {
  TimingGate gate;
  Log log;
  auto first = gate.alone(0);
  std::vector<std::jthread> waiting;
  for (const auto& each :
       std::vector<std::pair<std::string, int>>{{"a", 0}, {"b", 0}, {"urgent", 5}}) {
    waiting.emplace_back([&gate, &log, each] {
      const auto held = gate.alone(each.second);
      log.add(each.first);
    });
    until_waiting(gate, waiting.size());
  }
  first.reset();
  waiting.clear();
  EXPECT_EQ(log.text(), "urgent a b ");
}

TEST(TimingGate, WhoIsAskedToEndWaitsNoLonger) {
  TimingGate gate;
  std::atomic<int> stopped{0};
  std::atomic<bool> asked{false};
  auto held = gate.alone(0);
  {
    const auto wait = [&](bool alone) {
      const ThreadStop stop([&] { return asked.load(); });
      try {
        alone ? gate.alone(0) : gate.beside_others();
      } catch (const Stopped&) {
        ++stopped;
      }
    };
    const std::jthread one([&] { wait(true); }), two([&] { wait(false); });
    asked = true;
    until(stopped, 2);
  }
  held.reset();
  EXPECT_NE(gate.alone(0).use_count(), 0) << "nobody who gave up is waited for";
}

}  // namespace
}  // namespace assay::serve
