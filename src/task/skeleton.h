// An answer that compiles and can do nothing yet.
#pragma once

#include <string>
#include <vector>

#include "submission/submission.h"

namespace assay::task {

// Defines the functions of these names as `interface`, the text of a flattened header, declares
// them; each says that it does not support what is asked. Throws Error when one is not declared
// there.
std::string skeleton(const std::string& interface, const std::vector<std::string>& functions,
                     Language);

}  // namespace assay::task
