#include "processes/worker_text.h"

#include <algorithm>

#include "util/text.h"

namespace assay::processes {

bool WorkerText::take() {
  channel_.take(kept_, kLimit + 1 - std::min(kept_.size(), kLimit));
  return kept_.size() <= kLimit;
}

std::string WorkerText::note() const {
  if (kept_.empty()) return {};
  constexpr std::size_t kTail = 300;
  const std::size_t begin = kept_.size() > kTail ? kept_.size() - kTail : 0;
  return "; its output ends: " + printable(std::string_view(kept_).substr(begin), 3);
}

}  // namespace assay::processes
