// The adapters linked into the worker; the same order as challenge_rows().
#pragma once

#include <span>
#include <vector>

#include "assay/worker.h"

namespace assay::worker {

struct AdapterRow {
  const char* name;
  Adapter run;
};

std::span<const AdapterRow> adapter_rows();

}  // namespace assay::worker
