// Turns a fault of the harness (any exception) into the verdict of the cell it occurred in.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "assay/results.h"

namespace assay::cases {

inline std::string fault_text(const std::exception& fault) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&fault) != nullptr;
  return memory ? "out of memory" : fault.what();
}

inline void end_with_fault(CellResult& cell, const std::exception& fault) {
  cell.build.verdict = Verdict::harness_error;
  cell.build.log = fault_text(fault);
}

}  // namespace assay::cases
