#include "cli/sim_report.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/context.h"
#include "util/demangle.h"
#include "util/text.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;
using sim::Counters;
using sim::Finding;

struct NamedCounter {
  const char* name;
  std::uint64_t Counters::*member;
};

#define COUNTER(name) \
  { #name, &Counters::name }
constexpr NamedCounter kCounters[] = {
    COUNTER(global_load_bytes),
    COUNTER(global_store_bytes),
    COUNTER(global_load_sectors),
    COUNTER(global_store_sectors),
    COUNTER(constant_load_bytes),
    COUNTER(global_atomics),
    COUNTER(atomic_sectors),
    COUNTER(atomic_passes),
    COUNTER(atomic_hot_passes),
    COUNTER(shared_loads),
    COUNTER(shared_stores),
    COUNTER(shared_atomics),
    COUNTER(shared_passes),
    COUNTER(shared_replays),
    COUNTER(shared_bytes),
    COUNTER(local_load_bytes),
    COUNTER(local_store_bytes),
    COUNTER(local_sectors),
    COUNTER(instructions),
    COUNTER(integer),
    COUNTER(fp32),
    COUNTER(fp16),
    COUNTER(fp64),
    COUNTER(conversion),
    COUNTER(special),
    COUNTER(memory),
    COUNTER(control),
    COUNTER(warp),
    COUNTER(tensor),
    COUNTER(other),
    COUNTER(active_lanes),
    COUNTER(tensor_flops),
    COUNTER(fp32_flops),
    COUNTER(barriers),
    COUNTER(blocks),
    COUNTER(warps),
    COUNTER(longest_warp),
};
#undef COUNTER
// kCounters lists all counters except `launches`, which the summary counts, and the units' work.
static_assert(sizeof(Counters) ==
              (std::size(kCounters) + 1 + 2 * sim::kUnits) * sizeof(std::uint64_t));

Json units_json(const sim::UnitWork& work) {
  Json j;
  for (std::size_t u = 0; u < sim::kUnits; ++u)
    j[sim::to_string(static_cast<sim::Unit>(u))] = work.of[u];
  return j;
}

// Removes a bracketed part at the end of the name, if there is one.
std::string_view without_last(std::string_view name, char open, char close) {
  if (name.empty() || name.back() != close) return name;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == close) ++depth;
    if (name[i] == open && --depth == 0) return name.substr(0, i);
  }
  return name;
}

// Shortens a name for the table. The end of a long name says more than its namespaces and
// arguments.
std::string shortened(const std::string& full) {
  constexpr std::size_t kColumns = 56;
  std::string safe = printable(full, 1, 1 << 16);
  if (safe.size() <= kColumns) return safe;
  std::string_view name = without_last(safe, '(', ')');
  if (name.size() > kColumns) name = without_last(name, '<', '>');
  if (name.size() <= kColumns) return std::string(name);
  return fmt::format("...{}", name.substr(name.size() - (kColumns - 3)));
}

std::string kernel_table(const std::vector<sim::KernelSummary>& kernels) {
  TextTable table({"kernel", "launches", "instructions", "lanes active", "read bytes", "sectors",
                   "written bytes", "sectors", "shared passes", "replays"});
  for (const auto& k : kernels) {
    const Counters& c = k.counters;
    table.add({shortened(demangled(k.name)), std::to_string(k.launches),
               std::to_string(c.instructions),
               fmt::format("{:.1f}%", 100 * c.divergence_efficiency()),
               std::to_string(c.global_load_bytes), std::to_string(c.global_load_sectors),
               std::to_string(c.global_store_bytes), std::to_string(c.global_store_sectors),
               std::to_string(c.shared_passes), std::to_string(c.shared_replays)});
  }
  return table.str();
}

// Time modelled from the kernel's counters only, without the program's copies and fills.
ModelledTime modelled(const sim::KernelSummary& k, const Gpu& gpu) {
  SimulatedWork work;
  work.counters = k.counters;
  return modelled_time(work, gpu);
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string profile_table(const std::vector<sim::KernelSummary>& kernels, const Gpu& gpu) {
  constexpr std::uint64_t kSector = 32;
  TextTable table({"kernel", "modelled us", "bound", "reads", "writes", "lanes active", "replays",
                   "local", "warps resident"});
  for (const auto& k : kernels) {
    const Counters& c = k.counters;
    const ModelledTime time = modelled(k, gpu);
    table.add({shortened(demangled(k.name)), fmt::format("{:.3f}", 1e6 * time.total()),
               time.bound(), share(c.global_load_bytes, kSector * c.global_load_sectors),
               share(c.global_store_bytes, kSector * c.global_store_sectors),
               fmt::format("{:.1f}%", 100 * c.divergence_efficiency()),
               share(c.shared_replays, c.shared_passes),
               std::to_string(c.local_load_bytes + c.local_store_bytes),
               fmt::format("{} by {}", k.residency.warps, sim::to_string(k.residency.limit))});
  }
  return fmt::format("\nmodelled on {}, not measured\n{}", gpu.name, table.str());
}

// The lines with the most replays, and the number of further ones; empty if there are none.
std::string conflict_table(const std::vector<sim::KernelSummary>& kernels) {
  constexpr std::size_t kMostLines = 10;
  struct Row {
    const sim::KernelSummary* kernel;
    const sim::LineReplays* line;
  };
  std::vector<Row> rows;
  for (const auto& k : kernels) {
    for (const auto& line : k.replays) rows.push_back({&k, &line});
  }
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, std::greater{}, [](const Row& r) { return r.line->replays; });
  TextTable table({"bank conflicts at", "replays", "of its passes", "kernel"});
  for (const Row& r : std::span(rows).first(std::min(rows.size(), kMostLines))) {
    const auto passes = static_cast<double>(r.kernel->counters.shared_passes);
    table.add({printable(r.line->where, 1, 200), std::to_string(r.line->replays),
               fmt::format("{:.1f}%", 100 * static_cast<double>(r.line->replays) / passes),
               shortened(demangled(r.kernel->name))});
  }
  std::string text = "\n" + table.str();
  if (rows.size() > kMostLines)
    text += fmt::format("and at {} further lines: --json has all\n", rows.size() - kMostLines);
  return text + "\n";
}

std::string finding_text(const Finding& f) {
  return fmt::format("  {}: {}\n", sim::to_string(f.kind), printable(f.describe(), 6, 600));
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "";
  const int signal = WTERMSIG(status);
  return fmt::format("the program was ended by signal {} ({})\n", signal, ::strsignal(signal));
}

Json to_json(const sim::LineCounts& counts) {
  Json calls = Json::array();
  for (std::size_t i = 1; i < counts.places.size(); ++i)
    calls.push_back({{"file", counts.places[i].file}, {"line", counts.places[i].line}});
  return {{"file", counts.places.front().file},
          {"line", counts.places.front().line},
          {"inlined_at", calls},
          {"instructions", counts.instructions},
          {"active_lanes", counts.active_lanes},
          {"shared_replays", counts.shared_replays}};
}

Json to_json(const sim::KernelSummary& k, const Gpu* gpu) {
  Json replays = Json::array();
  for (const auto& line : k.replays)
    replays.push_back({{"where", line.where}, {"replays", line.replays}});
  Json counters;
  for (const auto& c : kCounters) counters[c.name] = k.counters.*c.member;
  counters["total"] = units_json(k.counters.total);
  counters["critical"] = units_json(k.counters.critical);
  const Json residency = {{"warps", k.residency.warps},
                          {"most", sim::kMaxResidentWarps},
                          {"limit", sim::to_string(k.residency.limit)}};
  Json kernel = {
      {"name", demangled(k.name)}, {"mangled", k.name},
      {"launches", k.launches},    {"divergence_efficiency", k.counters.divergence_efficiency()},
      {"residency", residency},    {"counters", counters},
      {"replays", replays}};
  for (const sim::LineCounts& line : k.lines) kernel["lines"].push_back(to_json(line));
  if (gpu != nullptr) {
    const ModelledTime time = modelled(k, *gpu);
    kernel["modelled"] = {{"gpu", gpu->name}, {"seconds", time.total()}, {"bound", time.bound()}};
  }
  return kernel;
}

Json to_json(const Finding& f) {
  return {{"kind", sim::to_string(f.kind)},
          {"kernel", f.kernel},
          {"block", std::to_array(f.thread.block)},
          {"thread", std::to_array(f.thread.thread)},
          {"where", f.where},
          {"text", f.text},
          {"other", f.other},
          {"count", f.count}};
}

}  // namespace

std::string sim_text(const SimulatedRun& run, const Gpu* gpu) {
  const sim::RunSummary& s = run.summary;
  if (!s.not_loaded.empty()) return fmt::format("assay: {}\n", s.not_loaded);
  std::string text = fmt::format("\n{}", how_it_ended(run.status));
  text += s.kernels.empty() ? "no kernel ran\n" : kernel_table(s.kernels);
  if (gpu != nullptr && !s.kernels.empty()) text += profile_table(s.kernels, *gpu);
  text += conflict_table(s.kernels);
  for (const auto& what : s.unsupported) {
    text += fmt::format("not supported by the simulator: {}\n",
                        printable(demangled_within(what), 6, 4000));
  }
  for (const auto& note : s.notes) text += fmt::format("note: {}\n", note);
  if (s.findings.empty()) return text + "no findings\n";
  text += fmt::format("{} finding{}:\n", s.findings.size(), s.findings.size() == 1 ? "" : "s");
  for (const Finding& f : s.findings) text += finding_text(f);
  return text;
}

std::string sim_json(const SimulatedRun& run, const Gpu* gpu) {
  const sim::RunSummary& s = run.summary;
  Json program;
  if (!s.not_loaded.empty()) {
    program["not_loaded"] = s.not_loaded;
  } else if (WIFSIGNALED(run.status)) {
    program["signal"] = WTERMSIG(run.status);
  } else {
    program["exit_status"] = WEXITSTATUS(run.status);
  }
  Json document = {{"program", program},
                   {"kernels", Json::array()},
                   {"findings", Json::array()},
                   {"unsupported", s.unsupported},
                   {"notes", s.notes}};
  for (const auto& k : s.kernels) document["kernels"].push_back(to_json(k, gpu));
  for (const Finding& f : s.findings) document["findings"].push_back(to_json(f));
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int exit_status(const SimulatedRun& run) {
  if (!run.summary.not_loaded.empty() || !run.summary.unsupported.empty())
    return kUsageOrHarnessError;
  if (!run.summary.findings.empty()) return kFindings;
  return WIFSIGNALED(run.status) ? 128 + WTERMSIG(run.status) : WEXITSTATUS(run.status);
}

}  // namespace assay::cli
