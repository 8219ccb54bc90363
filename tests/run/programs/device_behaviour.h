// What the scripted device does; the harness chooses by the limit on a launch's instructions.
#pragma once

#include <cstdint>

namespace assay::run::testing {

enum class DeviceBehaviour : std::uint64_t {
  exits_with_a_word,
  crashes,
  is_silent,
  answers_twice,
  reports_garbage,  // texts without an end, an input that does not exist
};

}  // namespace assay::run::testing
