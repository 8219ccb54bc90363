// Which calls fail on purpose.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/driver.h"

namespace assay::gpu {

struct Fault {
  bool hangs = false;
  CUresult code = kSuccess;  // unless it hangs
};

class Faults {
 public:
  Faults() = default;
  // Throws std::invalid_argument that says what is wrong with the text; see cuda_double.h.
  explicit Faults(std::string_view text);

  // Counts a call of the function, and says how this one fails, if it does.
  std::optional<Fault> next(const std::string& function);

 private:
  void add(std::string_view rule);

  std::map<std::pair<std::string, unsigned>, Fault> faults_;  // by function and number of the call
  std::map<std::string, unsigned> calls_;
};

}  // namespace assay::gpu
