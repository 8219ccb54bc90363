// What cp.reduce.async.bulk and red.async do to the words at their destination.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/execution/bulk_copies.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

struct Reduction {
  std::string_view op;  // "add"
  ptx::Type type;
  bool shared;  // to shared memory
  bool operator==(const Reduction&) const = default;
};

// An instruction refers to a reduction by a number from 1. 0: there is none such.
std::uint32_t number_of_reduction(const Reduction&);
// What the number stands for; of 0: nothing, so that a copy replaces what is there.
BulkReduction reduction_of_number(std::uint32_t);
// Whether it gives the same in any order.
bool commutes(std::uint32_t number);

}  // namespace assay::sim
