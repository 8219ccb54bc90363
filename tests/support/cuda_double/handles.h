// What a handle of the API points to: objects that stay where they are, and a test whether a
// pointer is one of them.
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
  // The first that the predicate holds for, or null.
  template <class Predicate>
  T* find(Predicate predicate) {
    const auto found = std::ranges::find_if(objects_, predicate);
    return found == objects_.end() ? nullptr : &*found;
  }

 private:
  std::deque<T> objects_;
};

}  // namespace assay::gpu
