// Work on several threads.
#pragma once

#include <thread>
#include <vector>

namespace {

// A function on up to `threads` threads, the caller's among them.
template <class F>
void on_threads(int threads, const F& f) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&f, t] { f(t); });
  f(0);
  for (std::thread& other : others) other.join();
}

}  // namespace
