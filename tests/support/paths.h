// Where the tests find their files. In its own source file, so that a test's object code does not
// depend on the folder it lies in.
#pragma once

#include <string>

namespace assay::testing {

const std::string& source_dir();  // the root of the source tree
const std::string& binary_dir();  // the root of the build folder

}  // namespace assay::testing
