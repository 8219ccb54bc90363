// Which waiting task goes next: the highest priority first, and within one the clients take turns,
// so that who sends much delays nobody but itself. Not thread-safe.
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
  // Nothing when it is empty. Of one client's tasks of one priority the oldest comes first.
  std::optional<std::string> pop();
  // False when it does not wait here.
  bool remove(const std::string& task);
  std::size_t size() const { return size_; }

 private:
  struct Line {
    std::string client;
    std::deque<std::string> tasks;  // never empty
  };
  // The line whose turn it is stands first.
  std::map<int, std::list<Line>, std::greater<>> levels_;
  std::size_t size_ = 0;
};

}  // namespace assay::serve
