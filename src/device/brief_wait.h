// Waiting for the other process of the link. Most calls are answered, and most answers followed by
// the next call, sooner than a process can be put to sleep and woken up: a pair of those takes some
// 100 us on a virtual machine. So each side looks for the other's byte for about as long before it
// sleeps, which at worst doubles the wait.
#pragma once

#include <cstdint>

#include "util/clock.h"

namespace assay::device {

class BriefWait {
 public:
  static constexpr std::uint64_t kNanoseconds = 50'000;

  // Calls `ready` until it returns true or the time is over. Returns how long that took, in ns.
  // After a wait in vain it sits out the next one, and twice as many after each further one in
  // turn, up to 63: the other side has long work, or no processor to itself.
  template <class Ready>
  std::uint64_t until(Ready&& ready) {
    if (left_out_ > 0) {
      --left_out_;
      return 0;
    }
    const std::uint64_t begin = steady_nanoseconds();
    for (;;) {
      const bool done = ready();
      const std::uint64_t waited = steady_nanoseconds() - begin;
      if (done) {
        in_vain_ = 0;
        return waited;
      }
      if (waited < kNanoseconds) continue;
      if (in_vain_ < kMostInVain) ++in_vain_;
      left_out_ = (1u << in_vain_) - 1;
      return waited;
    }
  }

 private:
  static constexpr unsigned kMostInVain = 6;
  unsigned in_vain_ = 0, left_out_ = 0;
};

}  // namespace assay::device
