#include "sim/execution/async_copies.h"

#include "sim/execution/memory_path.h"

namespace assay::sim {

using ptx::Space;

void AsyncCopies::reset() {
  copies_.clear();
  open_.fill(0);
}

void AsyncCopies::issue(Copy copy) {
  copy.group = open_;
  copies_.push_back(copy);
}

void AsyncCopies::commit(std::uint32_t lanes) {
  for (std::uint32_t l = 0; l < kLanes; ++l) open_[l] += (lanes >> l) & 1u;
}

void AsyncCopies::wait(WarpRun& w, std::uint32_t lanes, std::uint32_t pending, bool uncommitted) {
  const std::uint32_t here = w.pc;
  for (Copy& copy : copies_) {
    std::uint32_t done = 0;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      const bool over = uncommitted || copy.group[l] + pending < open_[l];
      done |= static_cast<std::uint32_t>(over) << l;
    }
    done &= copy.mask & lanes;
    if (done == 0) continue;
    copy.mask &= ~done;
    w.pc = copy.pc;  // attributes the write to the copy instruction
    const auto store = copy.bytes == 16  ? store_lanes<16>
                       : copy.bytes == 8 ? store_lanes<8>
                                         : store_lanes<4>;
    store(w, Space::shared, copy.to.data(), done, AccessKind::store, copy.data.data());
    if (!copy.partly_undefined) continue;
    w.replaying = true;
    store(w, Space::shared, copy.to.data(), done, AccessKind::store, copy.undefined.data());
    w.replaying = false;
  }
  w.pc = here;
  std::erase_if(copies_, [](const Copy& c) { return c.mask == 0; });
}

}  // namespace assay::sim
