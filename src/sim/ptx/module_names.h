// What a module has declared so far, and how much of its limits it has used.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/ptx/text_hash.h"

namespace assay::sim::ptx {

struct Declared {
  bool is_function = false;
  bool defined = false;  // has a body or, for variables, is not .extern
};

// Functions and variables. The views are into the text.
using ModuleNames = ViewTable<Declared>;

struct ModuleState {
  ModuleNames names;
  std::uint64_t initialised_bytes = 0;  // of variables with initial values
};

}  // namespace assay::sim::ptx
