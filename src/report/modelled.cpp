#include "report/modelled.h"

#include <fmt/format.h>

#include <algorithm>

#include "grade/gpu.h"
#include "records/lookup.h"
#include "records/share_of_floor.h"
#include "records/simulated_work.h"
#include "report/figures.h"
#include "util/text.h"

namespace assay::report {
namespace {

constexpr const char* kFormula =
    R"(modelled, never measured: launches * latency + copies / host link + the longest of
    memory         sectors of 32 bytes / bandwidth, those of atomics twice
    atomics        passes of the busiest slice of the L2 cache / 1 a clock
  and for a multiprocessor, the longest block or an equal share of all, whichever is more:
    path to memory sectors / 128 bytes a clock
    issue          machine instructions / 4 a clock
    longest warp   its instructions / 1 a clock
    arithmetic     fp32, integer, fp16, fp64, special-function or conversion lanes / those a clock
    loads          memory instructions and shuffles, or addresses of constants / 1 a clock
    tensor cores   operations of matrix instructions / the dense rate of their type
    shared memory  passes / 1 a clock
  A floor is the fewest launches and the least bytes or flops at the data sheet's rates. No caches are modelled.
)";

std::string time_text(const std::optional<SimulatedWork>& work, const Gpu& g) {
  return work ? duration(modelled_time(*work, g).total()) : "-";
}

std::string megabytes(double bytes) { return fmt::format("{:.2f}", bytes * 1e-6); }

// "1.53 (1.22 times the least)"
std::string traffic(const CaseResult& r, const SimulatedWork& work) {
  const auto least = least_work(r.metrics);
  std::string text = megabytes(bytes_moved(work.counters));
  if (least && least->bytes > 0)
    text += fmt::format(" ({:.2f}x least)", bytes_moved(work.counters) / least->bytes);
  return text;
}

}  // namespace

std::string modelled_tables(const BoardEntry& e) {
  const auto names = gpu_names();
  const auto name = std::ranges::find_if(
      names, [&](const std::string& n) { return gpu_named(n).name == e.score.modelled_on; });
  if (name == names.end() || e.score.speeds.empty()) return "";
  const Gpu& g = gpu_named(*name);
  TextTable times(
      {"timed case", "naive", "par", "floor", "this", "bound by", "speed, floor = 1", "share"});
  TextTable counts({"timed case", "MB moved", "instructions", "efficiency", "shared replays",
                    "local MB", "launches"});
  for (const ShapeSpeed& s : e.score.speeds) {
    const CaseResult* r = find_case(e.cell, s.case_name);
    const auto work = r == nullptr ? std::nullopt : simulated_work(r->metrics);
    if (!work) continue;
    const std::string label = one_line(r->shape.empty() ? r->name : r->name + ": " + r->shape);
    const auto least = least_work(r->metrics);
    const ModelledTime t = modelled_time(*work, g);
    times.add({label, time_text(simulated_work(r->metrics, kNaivePrefix), g),
               time_text(simulated_work(r->metrics, kParPrefix), g),
               least ? duration(floor_time(*least, g)) : "-", duration(t.total()), t.bound(),
               fmt::format("{:.3g}", share_of_floor(s)), fmt::format("{:.0f} %", 100 * s.points)});
    const sim::Counters& c = work->counters;
    counts.add({label, traffic(*r, *work), std::to_string(c.instructions),
                fmt::format("{:.0f} %", 100 * c.divergence_efficiency()),
                std::to_string(c.shared_replays),
                megabytes(static_cast<double>(c.local_load_bytes + c.local_store_bytes)),
                std::to_string(c.launches)});
  }
  return fmt::format("\ntimes on {}, {}\n", g.name, kFormula) + indented(times.str(), 2) +
         "\ncounted by the simulator:\n" + indented(counts.str(), 2);
}

}  // namespace assay::report
