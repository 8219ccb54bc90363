#include "cli/sim_report.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/context.h"
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
    COUNTER(global_atomics),
    COUNTER(constant_load_bytes),
    COUNTER(shared_loads),
    COUNTER(shared_stores),
    COUNTER(shared_atomics),
    COUNTER(shared_passes),
    COUNTER(shared_replays),
    COUNTER(shared_bytes),
    COUNTER(local_load_bytes),
    COUNTER(local_store_bytes),
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
};
#undef COUNTER
// All of them, but for `launches`, which the summary counts.
static_assert(sizeof(Counters) == (std::size(kCounters) + 1) * sizeof(std::uint64_t));

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

std::string shortened(std::string name) {
  constexpr std::size_t kColumns = 56;
  name = printable(name, 1, 4 * kColumns);
  return name.size() <= kColumns ? name : name.substr(0, kColumns - 3) + "...";
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

std::string finding_text(const Finding& f) {
  return fmt::format("  {}: {}\n", sim::to_string(f.kind), printable(f.describe(), 6, 600));
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "";
  const int signal = WTERMSIG(status);
  return fmt::format("the program was ended by signal {} ({})\n", signal, ::strsignal(signal));
}

Json to_json(const sim::KernelSummary& k) {
  Json counters;
  for (const auto& c : kCounters) counters[c.name] = k.counters.*c.member;
  return {{"name", demangled(k.name)},
          {"mangled", k.name},
          {"launches", k.launches},
          {"divergence_efficiency", k.counters.divergence_efficiency()},
          {"counters", counters}};
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

std::string sim_text(const SimulatedRun& run) {
  const sim::RunSummary& s = run.summary;
  if (!s.not_loaded.empty()) return fmt::format("assay: {}\n", s.not_loaded);
  std::string text = fmt::format("\n{}", how_it_ended(run.status));
  text += s.kernels.empty() ? "no kernel ran\n" : kernel_table(s.kernels);
  for (const auto& what : s.unsupported) {
    text += fmt::format("not supported by the simulator: {}\n", printable(what, 6, 600));
  }
  for (const auto& note : s.notes) text += fmt::format("note: {}\n", note);
  if (s.findings.empty()) return text + "no findings\n";
  text += fmt::format("{} finding{}:\n", s.findings.size(), s.findings.size() == 1 ? "" : "s");
  for (const Finding& f : s.findings) text += finding_text(f);
  return text;
}

std::string sim_json(const SimulatedRun& run) {
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
  for (const auto& k : s.kernels) document["kernels"].push_back(to_json(k));
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
