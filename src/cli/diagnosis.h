// A line of the report of `assay doctor`.
#pragma once

#include <cstdint>
#include <string>

namespace assay::cli {

struct Diagnosis {
  enum class State : std::uint8_t {
    ok,
    note,  // worth knowing; everything still works
    bad,   // something that was asked for does not work
  };

  std::string name, value;
  State state = State::ok;
};

}  // namespace assay::cli
