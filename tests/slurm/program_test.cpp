#include "slurm/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/error_of.h"

namespace assay::slurm {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(RunCommand, KeepsOutputErrorsAndStatusApart) {
  const Printed printed = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(printed.out, "out\n");
  EXPECT_EQ(printed.err, "err\n");
  EXPECT_EQ(printed.status, 3);
  EXPECT_EQ(run_command({"sh", "-c", "kill -KILL $$"}).status, 128 + 9);
}

TEST(RunCommand, TakesMoreThanAPipeHolds) {
  const Printed printed = run_command({"sh", "-c", "head -c 300000 /dev/zero | tee /dev/stderr"});
  EXPECT_EQ(printed.out.size(), 300'000U);
  EXPECT_EQ(printed.err.size(), 300'000U);
}

TEST(RunCommand, EndsWhatTakesTooLong) {
  EXPECT_THAT(error_of([] {
                run_command({"sleep", "600"}, 0.2);
              }),
              HasSubstr("sleep did not end within"));
}

TEST(RunCommand, SaysWhereAProgramShouldBe) {
  EXPECT_THAT(error_of([] { run_command({"sbatch-of-nowhere"}); }),
              HasSubstr("cannot find sbatch-of-nowhere on the PATH"));
}

}  // namespace
}  // namespace assay::slurm
