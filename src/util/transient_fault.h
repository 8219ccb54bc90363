// System faults that can pass by themselves: the same step may be retried.
#pragma once

#include <string>

#include "assay/error.h"

namespace assay {

// A failed step that may work in a moment, for example because there were too many processes or the
// machine was too busy. Any other exception would recur, or means that assay itself is broken.
class TransientFault : public Error {
 public:
  using Error::Error;
};

// Whether a system error (an errno) passes when others release what they hold: processes, memory,
// descriptors, disk space.
bool can_pass(int error) noexcept;

// Whether a system error (an errno) says nothing of the file on which it was met: a broken or distant
// disk, or one that can pass.
bool is_fault_of_machine(int error) noexcept;

// Throws "<failure>: No such file or directory", with the cause from errno, as a TransientFault if
// the cause can pass and as an Error otherwise. `failure` is a whole clause: "cannot make a pipe".
[[noreturn]] void throw_errno(const std::string& failure);
[[noreturn]] void throw_errno(const std::string& failure, int error);

}  // namespace assay
