// The message of the error that an action throws.
#pragma once

#include <string>

#include "assay/error.h"
#include "util/files.h"

namespace assay::testing {

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace assay::testing
