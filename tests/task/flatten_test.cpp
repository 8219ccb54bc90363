#include "task/flatten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace assay::task {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FlattenTest : public ::testing::Test {
 protected:
  FlattenTest() { fs::create_directories(root_ / "include" / "assay"); }

  fs::path put(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
    return root_ / name;
  }
  std::string flat(const fs::path& header) const { return flattened(header, root_ / "include"); }

  const testing::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path;
};

TEST_F(FlattenTest, WhatIsIncludedStandsInPlaceAndOnce) {
  put("include/assay/base.h", "#include <stdint.h>\nint base;\n");
  put("include/assay/more.h", "#include \"assay/base.h\"\nint more;\n");
  const fs::path header =
      put("abi.h", "/* first */\n#include \"assay/more.h\"\n#include \"assay/base.h\"\nint own;\n");
  EXPECT_EQ(flat(header), "/* first */\n#include <stdint.h>\nint base;\nint more;\nint own;\n");
}

TEST_F(FlattenTest, AFileBesideTheHeaderIsFound) {
  put("beside.h", "int beside;\n");
  EXPECT_EQ(flat(put("abi.h", "#include \"beside.h\"\n")), "int beside;\n");
}

TEST_F(FlattenTest, AMissingFileIsNamed) {
  const fs::path header = put("abi.h", "#include \"assay/none.h\"\n");
  const std::string error = testing::error_of([&] { flat(header); });
  EXPECT_THAT(error, HasSubstr("assay/none.h"));
  EXPECT_THAT(error, HasSubstr(header.string()));
}

}  // namespace
}  // namespace assay::task
