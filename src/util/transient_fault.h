// Faults of the system that can pass by themselves: the same step may be tried again.
#pragma once

#include <string>

#include "assay/error.h"

namespace assay {

// What failed may work in a moment: there were too many processes, or a machine that was too busy.
// All other exceptions would come again, or say that something is wrong with assay itself.
class TransientFault : public Error {
 public:
  using Error::Error;
};

// Whether an error of the system, in errno's numbers, passes when others give back what they hold:
// processes, memory, descriptors, room on a disk.
bool can_pass(int error) noexcept;

// Throws "<failure>: No such file or directory", the cause from errno, as a TransientFault where
// it can pass and as an Error otherwise. `failure` is a whole sentence: "cannot make a pipe".
[[noreturn]] void throw_errno(const std::string& failure);
[[noreturn]] void throw_errno(const std::string& failure, int error);

}  // namespace assay
