// A loop over independent steps on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "assay/parallel.h"
#include "util/stop.h"

namespace assay {

// Calls step(i) for i in [0, n) on up to `jobs` threads. Once all have ended, rethrows the first
// exception, or Stopped if a stop was requested. With more than one job, each computes references
// on a single thread.
template <class Step>
void for_each_job(std::size_t n, std::size_t jobs, Step step) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < n;) {
      try {
        step(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = n;
      }
    }
  };
  if (jobs <= 1 || n <= 1) {
    work();
  } else {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t j = 0; j < std::min(jobs, n); ++j) {
        threads.emplace_back([&work] {
          set_parallel_threads(1);
          work();
        });
      }
    } catch (const std::system_error&) {  // no more to be had: fewer do the same work
    }
    if (threads.empty()) work();
  }
  if (!error) return;
  check_stop();  // a failure during a stop is due to the stop
  std::rethrow_exception(error);
}

}  // namespace assay
