// What `assay doctor` found, line by line.
#pragma once

#include <cstdint>
#include <string>

namespace assay::cli {

struct Diagnosis {
  enum class State : std::uint8_t {
    ok,
    note,  // worth knowing; everything can be run
    bad,   // something that was asked for cannot be run
  };

  std::string name, value;
  State state = State::ok;
};

}  // namespace assay::cli
