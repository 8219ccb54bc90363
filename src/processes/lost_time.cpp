#include "processes/lost_time.h"

#include <algorithm>

namespace assay::processes {

double lost_seconds(const Scheduling& before, const Scheduling& now, double wall_s, int cores) {
  double most = 0;
  for (const auto& [thread, queued] : now.queued) {
    const auto then = before.queued.find(thread);
    most = std::max(most, queued - (then == before.queued.end() ? 0 : then->second));
  }
  const double unused = cores * wall_s - (now.processor - before.processor);
  return std::clamp(unused, 0.0, most);
}

}  // namespace assay::processes
