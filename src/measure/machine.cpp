#include "measure/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <span>

#include "assay/parallel.h"
#include "measure/caches.h"
#include "util/clock.h"
#include "util/shell.h"

namespace assay {
namespace {

// The value of the first line "key<spaces>separator value" of a file, without quotes.
std::string field(const char* file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\"") - begin + 1);
  }
  return {};
}

template <class Body>
double best_seconds(int rounds, Body body) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = steady_seconds();
    body();
    best = std::min(best, steady_seconds() - start);
  }
  return best;
}

// Independent chains: enough to fill the pipelines, and few enough to stay in registers.
constexpr int kChains = 10;
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
constexpr double kFlopsPerIteration = 2.0 * kLanes * kChains;

float multiply_add(std::int64_t iterations) {
  float sums[kChains][kLanes] = {};
  const float a = 0.999f, b = 1e-3f;
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sums) {
      for (float& x : chain) x = x * a + b;
    }
  }
  float total = 0;
  for (auto& chain : sums) {
    for (const float x : chain) total += x;
  }
  return total;
}

// Copies one half of the memory to the other. Where the parts of the cores are large, the C library
// writes past the caches; a copy of half the size is a third slower.
double copy_rate() {
  double rate = 0;
  with_memory_beyond_caches([&](std::span<std::uint64_t> words) {
    const std::size_t half = words.size() / 2;
    const double seconds = best_seconds(3, [&] {
      parallel_for(
          static_cast<std::int64_t>(half), 1 << 17, [&](std::int64_t begin, std::int64_t end) {
            std::uint64_t* const from = words.data() + begin;
            std::memcpy(from + half, from, static_cast<std::size_t>(end - begin) * sizeof *from);
          });
    });
    rate = static_cast<double>(2 * half * sizeof(std::uint64_t)) / seconds;
  });
  return rate;
}

double read_rate() {
  std::atomic<std::uint64_t> sink{0};  // keeps the compiler from dropping the loop
  double rate = 0;
  with_memory_beyond_caches([&](std::span<const std::uint64_t> words) {
    const auto from = words.first(words.size() / 2);
    const double seconds = best_seconds(3, [&] {
      parallel_for(
          static_cast<std::int64_t>(from.size()), 1 << 17,
          [&](std::int64_t begin, std::int64_t end) {
            std::uint64_t sums[32] = {};  // enough that loads, not additions, are the bottleneck
            for (std::int64_t i = begin; i + 32 <= end; i += 32) {
              for (std::int64_t j = 0; j < 32; ++j)
                sums[j] += from[static_cast<std::size_t>(i + j)];
            }
            for (const std::uint64_t sum : sums) sink += sum;
          });
    });
    rate = static_cast<double>(from.size_bytes()) / seconds;
  });
  return rate;
}

double multiply_add_rate() {
  constexpr std::int64_t kIterations = 4'000'000;
  std::atomic<float> sink{0};  // keeps the compiler from dropping the loop
  const double seconds = best_seconds(2, [&] {
    parallel_for(kIterations, 1,
                 [&](std::int64_t begin, std::int64_t end) { sink = multiply_add(end - begin); });
  });
  return kFlopsPerIteration * static_cast<double>(kIterations) / seconds;
}

}  // namespace

Machine describe_machine(const std::string& compiler) {
  Machine machine;
  machine.cpu = field("/proc/cpuinfo", "model name", ':');
  machine.os = field("/etc/os-release", "PRETTY_NAME", '=');
  utsname name{};
  if (::uname(&name) == 0) machine.kernel = name.release;
  machine.cores = available_cores();
  machine.memory_bytes =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  machine.l3_bytes = last_level_cache_bytes();
  if (!compiler.empty())
    machine.compiler = first_line_of(quoted(compiler) + " --version 2>/dev/null");
  return machine;
}

// "cpu user nice system idle iowait irq softirq steal ...", proc_stat(5). Guest time is included in
// user.
ProcessorTicks processor_ticks(const std::string& stat) {
  std::ifstream in(stat);
  std::string label;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0;
  in >> label >> user >> nice >> system >> idle >> wait >> irq >> soft >> stolen;
  if (!in || label != "cpu") return {};
  return {.busy = user + nice + system + irq + soft, .stolen = stolen};
}

double stolen_share(const ProcessorTicks& before, const ProcessorTicks& after) {
  if (after.busy < before.busy || after.stolen < before.stolen) return 0;
  const auto busy = static_cast<double>(after.busy - before.busy);
  const auto stolen = static_cast<double>(after.stolen - before.stolen);
  return stolen > 0 ? stolen / (busy + stolen) : 0;
}

void calibrate(Machine& machine) {
  machine.copy_bytes_per_s = copy_rate();
  machine.fma_flops_per_s = multiply_add_rate();
}

Roofline measure_roofline() {
  return {.bytes_per_s = std::max(copy_rate(), read_rate()), .flops_per_s = multiply_add_rate()};
}

}  // namespace assay
