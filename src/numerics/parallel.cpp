#include "assay/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "util/cpu_set.h"

namespace assay {
namespace {

thread_local int thread_count = 0;  // 0: all cores

class SingleThreaded {
 public:
  SingleThreaded() { thread_count = 1; }
  ~SingleThreaded() { thread_count = before_; }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_ = thread_count;
};

}  // namespace

int available_cores() {
  static const int cores = [] {
    const auto set = CpuSet::of_this_thread();
    return set ? std::max(1, set->count()) : 1;
  }();
  return cores;
}

int parallel_threads() { return thread_count > 0 ? thread_count : available_cores(); }

void set_parallel_threads(int n) { thread_count = n; }

void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (n <= 0) return;
  const std::int64_t chunks =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, parallel_threads());
  if (chunks == 1) return body(0, n);

  std::exception_ptr error;
  std::mutex mutex;
  const auto run = [&](std::int64_t chunk) {
    const SingleThreaded no_nesting;
    try {
      body(n * chunk / chunks, n * (chunk + 1) / chunks);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  std::int64_t begun = 1;
  try {
    for (; begun < chunks; ++begun) threads.emplace_back([&run, c = begun] { run(c); });
  } catch (const std::system_error&) {  // no more to be had: this thread does the rest
  }
  run(0);
  for (; begun < chunks; ++begun) run(begun);
  threads.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace assay
