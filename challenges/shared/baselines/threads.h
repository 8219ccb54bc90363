// Work on several threads.
#pragma once

#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace {

// Runs body(t) for t from 0 to threads - 1, each on a thread of its own, 0 on this one; what there
// is no thread for comes after it on this one too.
template <class Body>
void on_threads(std::int64_t threads, const Body& body) {
  std::vector<std::thread> others;
  std::int64_t next = 1;
  try {
    for (; next < threads; ++next) others.emplace_back([&body, next] { body(next); });
  } catch (const std::system_error&) {  // the system has no more of them
  }
  body(0);
  for (; next < threads; ++next) body(next);
  for (std::thread& other : others) other.join();
}

}  // namespace
