// The objects behind the API's handles. They never move, and a pointer can be checked for being one
// of them.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>

namespace assay::gpu {

template <class T>
class Handles {
 public:
  T* add(T object) { return &objects_.emplace_back(std::move(object)); }
  bool has(const T* handle) const {
    return std::ranges::any_of(objects_, [&](const T& o) { return &o == handle; });
  }
  // The first object that satisfies the predicate, or null.
  template <class Predicate>
  T* find(Predicate predicate) {
    const auto found = std::ranges::find_if(objects_, predicate);
    return found == objects_.end() ? nullptr : &*found;
  }

 private:
  std::deque<T> objects_;
};

}  // namespace assay::gpu
