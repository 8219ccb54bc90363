#include "device/code_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine_code.h"

namespace assay::device {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(CodeRegisters, AreThoseOfEachKernel) {
  const std::string code = testing::machine_code({{"_Z5heavyPf", 84}, {"light", 8}});
  EXPECT_TRUE(is_machine_code(code));
  EXPECT_THAT(registers_of(code), UnorderedElementsAre(Pair("_Z5heavyPf", 84u), Pair("light", 8u)));
}

TEST(CodeRegisters, OtherThingsTellNothing) {
  for (const std::string& text : {std::string(), std::string(".version 8.0"),
                                  std::string("\x7f"
                                              "ELF"),
                                  std::string(4096, '\0'), std::string(4096, '\xff')}) {
    EXPECT_THAT(registers_of(text), IsEmpty());
  }
  EXPECT_FALSE(is_machine_code(".version 8.0"));
}

// The code comes from an untrusted process.
TEST(CodeRegisters, NoCodeLeadsBeyondItsEnd) {
  const std::string code = testing::machine_code({{"k", 84}, {"light", 8}});
  for (std::size_t bytes = 0; bytes < code.size(); ++bytes) registers_of(code.substr(0, bytes));
  for (std::size_t at = 0; at < code.size(); ++at) {
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = code;
      changed[at] = value;
      registers_of(changed);
    }
  }
}

}  // namespace
}  // namespace assay::device
