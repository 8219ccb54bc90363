// Which calls of a test double fail on purpose, given as text:
// "cuMemCreate:2@1;cuLaunchKernel:hang@3" makes the first call of cuMemCreate return 2 and the
// third call of cuLaunchKernel never return.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace assay::testing {

struct Fault {
  bool hangs = false;
  int code = 0;  // unless it hangs
};

class Faults {
 public:
  Faults() = default;
  // `functions` are those that can fail; `list` is the file that lists them. Throws
  // std::invalid_argument, which says what is wrong with the text.
  Faults(std::string_view text, std::span<const std::string_view> functions, std::string_view list);

  // Counts a call of the function and returns how this call fails, if it does.
  std::optional<Fault> next(const std::string& function);

 private:
  void add(std::string_view rule, std::span<const std::string_view> functions,
           std::string_view list);

  std::map<std::pair<std::string, unsigned>, Fault> faults_;  // by function and call number
  std::map<std::string, unsigned> calls_;
};

}  // namespace assay::testing
