#include "sim/execution/deadlock.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "sim/execution/fragments.h"

namespace assay::sim {
namespace {

using State = Fragment::State;

std::uint32_t pc_of(const Fragment& f) {
  const Block& block = f.frame->code->blocks[f.block];
  return f.frame->code->first_pc + (f.state == State::at_barrier ? block.end : block.begin);
}

std::uint32_t first_thread(const WarpRun& w, const Fragment& f) {
  return w.index * kWarpSize + static_cast<std::uint32_t>(std::countr_zero(f.mask));
}

}  // namespace

void report_deadlock(BlockRun& block) {
  struct Waiting {
    std::uint32_t threads = 0, first = 0;
  };
  std::map<std::uint32_t, Waiting> places;  // by pc
  std::uint32_t exited = 0;
  RawFinding finding;
  finding.block = block.index;
  for (WarpRun& w : block.warps) {
    exited += static_cast<std::uint32_t>(std::popcount(w.existing & ~w.live));
    for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
      const Fragment& f = w.fragments[i];
      Waiting& place = places[pc_of(f)];
      if (place.threads == 0) place.first = first_thread(w, f);
      place.threads += static_cast<std::uint32_t>(std::popcount(f.mask));
      if (f.state != State::at_rendezvous) continue;
      finding.kind = FindingKind::warp_sync;
      finding.pc = pc_of(f);
      finding.thread = first_thread(w, f);
      finding.address = missing_lanes(w, f);  // the lanes it waits for
      block.checker.report(finding);
    }
  }
  const Program& program = *block.grid->program;
  std::string text = "no thread of the block can go on:";
  const char* separator = " ";
  for (const auto& [pc, place] : places) {
    text += fmt::format("{}{} wait{} at {} ({})", separator, place.threads,
                        place.threads == 1 ? "s" : "", program.info_of(pc).text, program.place(pc));
    separator = ", ";
  }
  if (exited != 0) text += fmt::format("{}{} ended", separator, exited);
  const auto& [pc, place] = *places.begin();
  throw LaunchFailure{false, FindingKind::deadlock, block.index, place.first, pc, text};
}

}  // namespace assay::sim
