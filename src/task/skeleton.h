// An answer that compiles but does nothing yet.
#pragma once

#include <string>
#include <vector>

#include "submission/submission.h"

namespace assay::task {

// Defines the named functions as they are declared in `interface`, the text of a flattened header.
// Each returns that it does not support the request. Throws Error if one is not declared there.
std::string skeleton(const std::string& interface, const std::vector<std::string>& functions,
                     Language);

}  // namespace assay::task
