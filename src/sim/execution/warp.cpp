// All of warp.h and nothing else: tests of handlers substitute their own version.
#include "sim/execution/warp.h"

#include <type_traits>

#include "sim/execution/block_run.h"
#include "sim/execution/memory_path.h"

namespace assay::sim {

using ptx::Space;

namespace {

template <class F>
void with_size(std::uint32_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::integral_constant<unsigned, 1>{});
    case 2: return f(std::integral_constant<unsigned, 2>{});
    case 4: return f(std::integral_constant<unsigned, 4>{});
    case 8: return f(std::integral_constant<unsigned, 8>{});
    case 16: return f(std::integral_constant<unsigned, 16>{});
    default: return f(std::integral_constant<unsigned, 32>{});
  }
}

}  // namespace

void read_lanes(Warp& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                std::uint32_t bytes, void* data) {
  with_size(bytes, [&](auto n) {
    load_lanes<n()>(run_of(w), space, address, mask, AccessKind::load,
                    static_cast<std::byte*>(data));
  });
}

void write_lanes(Warp& w, Space space, const std::uint64_t* address, std::uint32_t mask,
                 std::uint32_t bytes, const void* data) {
  with_size(bytes, [&](auto n) {
    store_lanes<n()>(run_of(w), space, address, mask, AccessKind::store,
                     static_cast<const std::byte*>(data));
  });
}

void note_absent_sources(Warp& warp, std::uint32_t lanes) {
  auto& w = run_of(warp);
  if (!w.block->checker.finds_undefined()) return;
  w.seen_undefined |= lanes;
  w.last_undefined = {w.pc, 0, 0, false};
  w.block_end = nullptr;
}

void fail(Warp& w, FindingKind kind, std::uint32_t lane, const std::string& text) {
  throw LaunchFailure{false, kind, w.block->index, w.index * kWarpSize + lane, w.pc, text};
}

}  // namespace assay::sim
