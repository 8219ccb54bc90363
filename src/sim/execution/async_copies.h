// cp.async: copies from global to shared memory that are invisible until the thread has waited for
// them (PTX ISA, section 9.7.9.25.3). A copy reads its source when issued and writes when waited
// for. A read of the destination in between finds the old contents, which are undefined or a race.
// Hardware may write at once, so for the race check the copy writes when it is issued, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::sim {

struct WarpRun;

class AsyncCopies {
 public:
  struct Copy {
    std::uint32_t mask = 0, bytes = 0, pc = 0;
    std::array<std::uint64_t, 32> to;     // offsets in the shared window
    std::array<std::uint32_t, 32> group;  // each lane's group that it belongs to
    bool partly_undefined = false;
    alignas(64) std::array<std::byte, 32 * 16> data;  // lane-major
    std::array<std::byte, 32 * 16> undefined;         // which bits of the data are, if
                                                      // partly_undefined
  };

  void reset();
  void issue(Copy copy);  // sets copy.group
  void commit(std::uint32_t lanes);
  // Completes all but the latest `pending` committed groups of the lanes; with `uncommitted`, those
  // copies too.
  void wait(WarpRun&, std::uint32_t lanes, std::uint32_t pending, bool uncommitted);

 private:
  std::vector<Copy> copies_;              // in order of issue
  std::array<std::uint32_t, 32> open_{};  // each lane's uncommitted group
};

}  // namespace assay::sim
