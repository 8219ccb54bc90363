#include "util/transient_fault.h"

#include <cerrno>
#include <cstring>

#include "util/remedy.h"

namespace assay {

bool can_pass(int error) noexcept {
  switch (error) {
    case EAGAIN:  // too many processes or threads, among others
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:  // other builds remove their files in time
    case EDQUOT:
    case EBUSY:
    case EINTR:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

bool is_fault_of_machine(int error) noexcept {
  return can_pass(error) || error == EIO || error == ESTALE;
}

void throw_errno(const std::string& failure) { throw_errno(failure, errno); }

void throw_errno(const std::string& failure, int error) {
  const std::string text = failure + ": " + std::strerror(error) + remedy(error);
  if (can_pass(error)) throw TransientFault(text);
  throw Error(text);
}

}  // namespace assay
