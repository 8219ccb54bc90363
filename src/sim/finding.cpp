#include "sim/finding.h"

#include <fmt/format.h>

namespace assay::sim {

const char* to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds: return "out of bounds";
    case FindingKind::misaligned: return "misaligned access";
    case FindingKind::use_after_free: return "use after free";
    case FindingKind::uninitialised: return "uninitialised read";
    case FindingKind::shared_race: return "race in shared memory";
    case FindingKind::global_race: return "race in global memory";
    case FindingKind::stream_race: return "race between streams";
    case FindingKind::late_change: return "change before a copy is done";
    case FindingKind::equal_stores: return "equal stores";
    case FindingKind::barrier_divergence: return "divergent barrier";
    case FindingKind::deadlock: return "deadlock";
    case FindingKind::warp_sync: return "incomplete warp";
    case FindingKind::assertion: return "assertion";
    case FindingKind::trap: return "trap";
    case FindingKind::instruction_limit: return "instruction limit";
    case FindingKind::read_only: return "write to read-only memory";
  }
  return "unknown";
}

bool is_fatal(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds:
    case FindingKind::misaligned:
    case FindingKind::use_after_free:
    case FindingKind::deadlock:
    case FindingKind::assertion:
    case FindingKind::trap:
    case FindingKind::instruction_limit:
    case FindingKind::read_only: return true;
    case FindingKind::uninitialised:
    case FindingKind::shared_race:
    case FindingKind::global_race:
    case FindingKind::stream_race:
    case FindingKind::late_change:
    case FindingKind::equal_stores:
    case FindingKind::barrier_divergence:
    case FindingKind::warp_sync: return false;
  }
  return false;
}

bool is_note(FindingKind kind) { return kind == FindingKind::equal_stores; }

std::string Finding::describe() const {
  const auto& b = thread.block;
  const auto& t = thread.thread;
  const bool of_threads = kind != FindingKind::stream_race && kind != FindingKind::late_change;
  std::string out = of_threads
                        ? fmt::format("{}: block ({},{},{}), thread ({},{},{}), {}: {}", kernel,
                                      b[0], b[1], b[2], t[0], t[1], t[2], where, text)
                        : fmt::format("{}: {}: {}", kernel, where, text);
  if (!other.empty()) out += "; " + other;
  if (count > 1) out += fmt::format(" ({} times)", count);
  return out;
}

}  // namespace assay::sim
