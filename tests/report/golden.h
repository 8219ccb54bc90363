// Golden files: tests/report/golden/<name>. ASSAY_UPDATE_GOLDEN=1 rewrites them with the code's
// current output; read the difference before committing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/paths.h"
#include "util/files.h"

namespace assay::testing {

inline void expect_golden(const std::string& name, const std::string& actual) {
  const auto file = std::filesystem::path(source_dir()) / "tests/report/golden" / name;
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) write_file_atomically(file, actual);
  EXPECT_EQ(actual, read_file(file)) << "run with ASSAY_UPDATE_GOLDEN=1 if this is meant";
}

}  // namespace assay::testing
