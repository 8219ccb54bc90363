#pragma once

#include "sim/operations/flow_selection.h"

namespace assay::sim {

// Of cp.async.bulk and cp.reduce.async.bulk.
FlowSelection select_bulk(const ptx::Instruction&, const Names&);

}  // namespace assay::sim
