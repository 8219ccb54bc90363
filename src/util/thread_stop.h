// A request to stop one thread's work early, besides the one to the whole program (util/stop.h).
#pragma once

#include <functional>

namespace assay {

// During its lifetime, check_stop() in this thread also throws Stopped once `asked` returns true.
// Sandboxes do not watch it, so what runs in one continues to its own limit. One per thread at a
// time.
class ThreadStop {
 public:
  explicit ThreadStop(std::function<bool()> asked);
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;
};

// Whether this thread was asked to stop by its ThreadStop.
bool thread_was_asked();

}  // namespace assay
