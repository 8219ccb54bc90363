#include "cli/annotated_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "util/files.h"
#include "util/temporary_folder.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using sim::LineCounts;
using sim::SourceLine;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class AnnotatedSource : public ::testing::Test {
 protected:
  AnnotatedSource() { write_file_atomically(program_, "one\n\n\tthree\nfour\nfive\nsix\nseven\n"); }

  SourceLine at(std::uint32_t line) const { return {program_.string(), line}; }

  std::string shown(std::vector<LineCounts> lines, std::vector<sim::Finding> findings = {}) const {
    sim::RunSummary summary;
    summary.kernels.push_back({"f", 1, {}, {}, {}, std::move(lines)});
    summary.findings = std::move(findings);
    return annotated_sources(summary, {program_});
  }

  static sim::Finding race(std::string where) {
    sim::Finding f;
    f.kind = sim::FindingKind::shared_race;
    f.where = std::move(where);
    f.text = "writes what another thread reads";
    return f;
  }

  TemporaryFolder folder_{"assay-annotated-source-"};
  fs::path program_ = folder_.path() / "kernel.cu";
};

TEST_F(AnnotatedSource, NothingOfARunThatExecutedNothing) { EXPECT_THAT(shown({}), IsEmpty()); }

TEST_F(AnnotatedSource, CountsStandBeforeTheirLineAndThoseAroundIt) {
  EXPECT_EQ(shown({{{at(3)}, 30, 30 * 16, 0}, {{at(4)}, 10, 320, 7}}),
            "\n" + program_.string() +
                "\n"
                "  instructions  share  lanes   replays   line\n"
                "                                            1  one\n"
                "                                            2\n"
                "            30  75.0%  50.0%                3      three\n"
                "            10  25.0% 100.0%         7      4  four\n"
                "                                            5  five\n"
                "                                            6  six\n");
}

TEST_F(AnnotatedSource, LinesFarFromAllAreLeftOut) {
  std::string text;
  for (int i = 1; i <= 20; ++i) text += "line " + std::to_string(i) + "\n";
  write_file_atomically(program_, text);
  const std::string out = shown({{{at(2)}, 1, 32, 0}, {{at(15)}, 1, 32, 0}});
  EXPECT_THAT(out, HasSubstr("     4  line 4\n" + std::string(43, ' ') + "...\n"));
  EXPECT_THAT(out, HasSubstr("...\n" + std::string(43, ' ') + "13  line 13\n"));
  EXPECT_THAT(out, Not(HasSubstr("line 12")));
}

TEST_F(AnnotatedSource, CodeOfTheToolkitCountsWhereItIsCalled) {
  fs::create_directory(folder_.path() / "include");
  write_file_atomically(folder_.path() / "include" / "cuda_runtime_api.h", "");
  const SourceLine half{(folder_.path() / "include" / "cub" / "half.h").string(), 9};
  const std::string out = shown({{{half, at(6)}, 8, 256, 0}, {{half}, 2, 64, 0}});
  EXPECT_THAT(out, HasSubstr("             8  80.0% 100.0%                6  six\n"));
  EXPECT_THAT(out, HasSubstr("in no source of the program"));
  EXPECT_THAT(out, HasSubstr("half.h:9"));
}

TEST_F(AnnotatedSource, InlinedCodeOfTheProgramCountsWhereItStands) {
  EXPECT_THAT(shown({{{at(4), at(6)}, 8, 256, 0}}),
              HasSubstr("             8 100.0% 100.0%                4  four\n"));
}

TEST_F(AnnotatedSource, WhatHasNoSourceIsNamedByItsPtx) {
  const std::string out = shown({{{SourceLine{"", 17}}, 3, 96, 0}});
  EXPECT_THAT(out, HasSubstr("PTX line 17"));
  EXPECT_THAT(out, Not(HasSubstr("kernel.cu")));
}

// nvcc gives line 0 to code that belongs to no line.
TEST_F(AnnotatedSource, CodeOfNoLineIsInNoSource) {
  const std::string out =
      shown({{{at(0)}, 3, 96, 0}, {{at(0), at(6)}, 1, 32, 0}}, {race("kernel.cu:0")});
  EXPECT_THAT(out, HasSubstr("kernel.cu, no line"));
  EXPECT_THAT(out, HasSubstr("             1  25.0% 100.0%                6  six\n"));
  EXPECT_THAT(out, Not(HasSubstr("^")));
}

TEST_F(AnnotatedSource, TheLastLineThereCanBeIsShown) {
  constexpr std::uint32_t kLast = 0xffffffff;
  EXPECT_THAT(shown({{{at(kLast)}, 8, 256, 0}}),
              HasSubstr("             8 100.0% 100.0%           4294967295\n"));
}

TEST_F(AnnotatedSource, FindingsStandBelowTheirLine) {
  const std::string out = shown({{{at(4)}, 8, 256, 0}}, {race("kernel.cu:4")});
  EXPECT_THAT(out, HasSubstr("  four\n" + std::string(45, ' ') + "^  " +
                             sim::to_string(sim::FindingKind::shared_race)));
  EXPECT_THAT(out, HasSubstr("writes what another thread reads"));
}

TEST_F(AnnotatedSource, AKernelThatFailedHasItsFindingInTheProgram) {
  EXPECT_THAT(shown({}, {race("kernel.cu:5")}), HasSubstr("     5  five\n"));
  EXPECT_THAT(shown({}, {race("library.h:1, inlined at kernel.cu:5")}),
              HasSubstr("     5  five\n"));
  EXPECT_THAT(shown({}, {race("PTX line 5")}), IsEmpty());
}

TEST_F(AnnotatedSource, AFileThatIsGoneHasItsCounts) {
  fs::remove(program_);
  const std::string out = shown({{{at(4)}, 8, 256, 0}});
  EXPECT_THAT(out, HasSubstr("(cannot be read: lines by their numbers only)"));
  EXPECT_THAT(out, HasSubstr("             8 100.0% 100.0%                4\n"));
}

TEST_F(AnnotatedSource, WhatASourceHoldsCannotControlTheTerminal) {
  write_file_atomically(program_, "\x1b[31mred\n");
  EXPECT_THAT(shown({{{at(1)}, 8, 256, 0}}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace assay::cli
