#include "serve/fair_queue.h"

#include <algorithm>
#include <utility>

namespace assay::serve {

void FairQueue::push(const std::string& task, const std::string& client, int priority) {
  std::list<Line>& lines = levels_[priority];
  auto line = std::ranges::find(lines, client, &Line::client);
  if (line == lines.end()) line = lines.insert(lines.end(), Line{client, {}});
  line->tasks.push_back(task);
  ++size_;
}

std::optional<std::string> FairQueue::pop() {
  if (levels_.empty()) return std::nullopt;
  const auto level = levels_.begin();
  std::list<Line>& lines = level->second;
  std::string task = std::move(lines.front().tasks.front());
  lines.front().tasks.pop_front();
  if (lines.front().tasks.empty()) {
    lines.pop_front();
  } else {
    lines.splice(lines.end(), lines, lines.begin());
  }
  if (lines.empty()) levels_.erase(level);
  --size_;
  return task;
}

bool FairQueue::remove(const std::string& task) {
  for (auto level = levels_.begin(); level != levels_.end(); ++level) {
    for (auto line = level->second.begin(); line != level->second.end(); ++line) {
      const auto at = std::ranges::find(line->tasks, task);
      if (at == line->tasks.end()) continue;
      line->tasks.erase(at);
      if (line->tasks.empty()) level->second.erase(line);
      if (level->second.empty()) levels_.erase(level);
      --size_;
      return true;
    }
  }
  return false;
}

}  // namespace assay::serve
