// A request to end early what one thread does, beside that to the whole program (util/stop.h).
#pragma once

#include <functional>

namespace assay {

// While it lives, check_stop() in this thread also throws Stopped once `asked` holds. Sandboxes do
// not watch it, so what runs in one goes on to its own limit. One at a time in a thread.
class ThreadStop {
 public:
  explicit ThreadStop(std::function<bool()> asked);
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;
};

// Whether this thread was asked so.
bool thread_was_asked();

}  // namespace assay
