#include "cases/fill_inputs.h"

#include <cstddef>
#include <vector>

namespace assay::cases {

void fill_inputs(const Challenge& challenge, const CaseSpec& spec, const CasePlan& plan,
                 const Seeds& seeds, BufferViews buffers) {
  std::vector<BufferView> all(buffers.begin(), buffers.end());
  std::vector<std::vector<std::byte>> memory;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BufferPlan& buffer = plan.buffers[i];
    // A sparse buffer would take all of its address space as memory.
    if (!buffer.withheld || buffer.role == Role::output || !buffer.pieces.empty()) continue;
    memory.emplace_back(buffer.bytes());
    all[i] = {memory.back().data(), memory.back().size()};
  }
  challenge.fill(spec, plan, seeds, all);
}

}  // namespace assay::cases
