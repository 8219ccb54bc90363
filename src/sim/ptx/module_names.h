// What a module has declared so far, and what it has used up.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/ptx/text_hash.h"

namespace assay::sim::ptx {

struct Declared {
  bool is_function = false;
  bool defined = false;  // a body or, of variables, not .extern
};

// Functions and variables. The views are into the text.
using ModuleNames = ViewTable<Declared>;

struct ModuleState {
  ModuleNames names;
  std::uint64_t initialised_bytes = 0;  // of variables with initial values
};

}  // namespace assay::sim::ptx
