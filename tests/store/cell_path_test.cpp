#include "store/cell_path.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "assay/error.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

TEST(CellPath, PlainNamesStandForThemselves) {
  EXPECT_EQ(cell_path({"gpt-4.1_mini", "kv_cache", "", Device::cpu}),
            "gpt-4.1_mini/kv_cache/cpu.json");
  EXPECT_EQ(cell_path({"m", "c", "12", Device::sim}), "m/c/12.sim.json");
}

TEST(CellPath, OnePartOfIt) {
  EXPECT_EQ(path_part("gpt-4.1_mini"), "gpt-4.1_mini");
  EXPECT_EQ(path_part("../a b"), "%2E.%2Fa%20b");
  EXPECT_THROW(path_part(""), Error);
}

const std::string kLong(255, 'x');
// Names that a folder may have, or that an untrusted board may contain.
const std::vector<std::string> kNames{"a",         "A",
                                      "a b",       "a%20b",
                                      ".",         "..",
                                      "...",       ".a",
                                      "a.",        "a/b",
                                      "/",         "../../etc/passwd",
                                      "a\\b",      std::string("a\0b", 3),
                                      "\n",        "é",
                                      "\xff",      "\xfe",
                                      "%FF",       "~",
                                      "cpu",       "1.cpu",
                                      "cpu.json",  kLong,
                                      kLong + "y", std::string(255, '\xff')};

TEST(CellPath, NoNameLeavesTheFolder) {
  for (const std::string& name : kNames) {
    const fs::path path = cell_path({name, name, name, Device::cpu});
    EXPECT_EQ(path.lexically_normal(), path) << name;
    EXPECT_TRUE(path.is_relative());
    ASSERT_EQ(std::distance(path.begin(), path.end()), 3) << path;
    for (const fs::path& part : path) {
      EXPECT_NE(part.string().front(), '.') << path;
      EXPECT_LT(part.string().size(), 240u) << path;
      for (const char c : part.string()) EXPECT_TRUE(c > 0x20 && c < 0x7f) << path;
    }
  }
}

TEST(CellPath, NoTwoCellsShareOne) {
  std::set<std::string> paths;
  std::size_t cells = 0;
  for (const std::string& model : kNames) {
    for (const std::string& attempt : kNames) {
      for (const Device device : kDevices) {
        paths.insert(cell_path({model, "c", attempt, device}));
        ++cells;
      }
    }
    paths.insert(cell_path({model, "c", "", Device::cpu}));
    ++cells;
  }
  EXPECT_EQ(paths.size(), cells);
}

TEST(CellPath, NamesThatAreMissingAreRefused) {
  EXPECT_THROW(cell_path({"", "c", "", Device::cpu}), Error);
  EXPECT_THROW(cell_path({"m", "", "", Device::cpu}), Error);
}

}  // namespace
}  // namespace assay::store
