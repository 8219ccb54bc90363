#include "records/machine_kind.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(KindOf, IsProcessorAndCores) {
  Machine machine;
  machine.cpu = "AMD EPYC";
  machine.cores = 2;
  EXPECT_EQ(kind_of(machine), "AMD EPYC, 2 cores");
  machine.cores = 1;
  machine.kernel = "another";  // the kernel makes no separate kind
  EXPECT_EQ(kind_of(machine), "AMD EPYC, 1 core");
  EXPECT_EQ(kind_of({}), "unknown, 0 cores");
}

}  // namespace
}  // namespace assay
