#include "sim/operations/flow_selection.h"

namespace assay::sim {

void throw_unsupported(const ptx::Instruction& in, const std::string& why) {
  throw Unsupported((why.empty() ? std::string() : why + " in ") + in.full_name() +
                    " is not supported");
}

}  // namespace assay::sim
