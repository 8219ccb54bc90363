// Chooses the next waiting task: the highest priority first, and within a priority the clients take
// turns, so a client that sends a lot delays only itself. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace assay::serve {

class FairQueue {
 public:
  void push(const std::string& task, const std::string& client, int priority);
  // Absent if the queue is empty. One client's tasks of one priority come oldest first.
  std::optional<std::string> pop();
  // False if the task is not waiting here.
  bool remove(const std::string& task);
  std::size_t size() const { return size_; }

 private:
  struct Line {
    std::string client;
    std::deque<std::string> tasks;  // never empty
  };
  // The line whose turn it is comes first.
  std::map<int, std::list<Line>, std::greater<>> levels_;
  std::size_t size_ = 0;
};

}  // namespace assay::serve
