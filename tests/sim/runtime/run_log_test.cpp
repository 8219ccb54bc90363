#include "sim/runtime/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace assay::sim {
namespace {

using testing::ElementsAre;

class RunLogTest : public testing::Test {
 protected:
  RunLogTest() : fd_(::memfd_create("log", 0)), log_(fd_) {}
  ~RunLogTest() override { ::close(fd_); }

  std::string written() const {
    std::string bytes(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  static Finding finding(FindingKind kind, std::string where, std::uint64_t count = 1) {
    Finding f;
    f.kind = kind;
    f.kernel = "f(int*)";
    f.thread = {{1, 2, 3}, {4, 5, 6}};
    f.where = std::move(where);
    f.text = "text";
    f.other = "other";
    f.count = count;
    return f;
  }
  static LaunchRecord record(std::string kernel, std::uint64_t instructions,
                             std::vector<Finding> findings = {}) {
    LaunchRecord r{std::move(kernel), {}, {}, std::move(findings), {}};
    r.counters.instructions = instructions;
    return r;
  }

  int fd_;
  RunLog log_;
};

TEST_F(RunLogTest, LaunchesAreSummedByKernel) {
  log_.launch(record("b", 1));
  log_.launch(record("a", 10));
  log_.launch(record("b", 2));
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.kernels.size(), 2u);
  EXPECT_EQ(s.kernels[0].name, "b");
  EXPECT_EQ(s.kernels[0].launches, 2u);
  EXPECT_EQ(s.kernels[0].counters.instructions, 3u);
  EXPECT_EQ(s.kernels[1].launches, 1u);
}

TEST_F(RunLogTest, ReplaysAreSummedByKernelAndLine) {
  LaunchRecord a = record("a", 1), b = record("b", 1);
  a.replays = {{"k.cu:7", 5}, {"k.cu:3", 2}};
  b.replays = {{"k.cu:7", 1}};
  log_.launch(a);
  log_.launch(b);
  a.replays = {{"k.cu:3", 4}, {"k.cu:9", 1}};
  log_.launch(a);
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.kernels.size(), 2u);
  EXPECT_THAT(s.kernels[0].replays, ElementsAre(LineReplays{"k.cu:3", 6}, LineReplays{"k.cu:7", 5},
                                                LineReplays{"k.cu:9", 1}));
  EXPECT_THAT(s.kernels[1].replays, ElementsAre(LineReplays{"k.cu:7", 1}));
}

TEST_F(RunLogTest, LinesAreSummedByKernelAndPlace) {
  const SourceLine seven{"/src/k.cu", 7}, call{"/src/k.cu", 9}, ptx{"", 3};
  LaunchRecord a = record("a", 1), b = record("b", 1);
  a.lines = {{{seven}, 5, 160, 2}, {{seven, call}, 1, 32, 0}};
  b.lines = {{{ptx}, 4, 4, 0}};
  log_.launch(a);
  log_.launch(b);
  a.lines = {{{seven}, 2, 10, 1}};
  log_.launch(a);
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.kernels.size(), 2u);
  EXPECT_THAT(s.kernels[0].lines,
              ElementsAre(LineCounts{{seven}, 7, 170, 3}, LineCounts{{seven, call}, 1, 32, 0}));
  EXPECT_THAT(s.kernels[1].lines, ElementsAre(LineCounts{{ptx}, 4, 4, 0}));
}

TEST_F(RunLogTest, TheLaunchWithTheFewestResidentWarpsCounts) {
  LaunchRecord r = record("a", 1);
  for (const Residency residency :
       {Residency{}, Residency{48, ResidencyLimit::registers},
        Residency{16, ResidencyLimit::shared_memory}, Residency{64, ResidencyLimit::threads}}) {
    r.residency = residency;
    log_.launch(r);
  }
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.kernels.size(), 1u);
  EXPECT_EQ(s.kernels[0].residency.warps, 16u);
  EXPECT_EQ(s.kernels[0].residency.limit, ResidencyLimit::shared_memory);
}

TEST_F(RunLogTest, FindingsComeBackWhole) {
  log_.launch(record("a", 0, {finding(FindingKind::shared_race, "k.cu:7", 3)}));
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.findings.size(), 1u);
  const Finding& f = s.findings[0];
  EXPECT_EQ(f.kind, FindingKind::shared_race);
  EXPECT_EQ(f.kernel, "f(int*)");
  EXPECT_THAT(f.thread.block, ElementsAre(1, 2, 3));
  EXPECT_THAT(f.thread.thread, ElementsAre(4, 5, 6));
  EXPECT_EQ(f.where, "k.cu:7");
  EXPECT_EQ(f.text, "text");
  EXPECT_EQ(f.other, "other");
  EXPECT_EQ(f.count, 3u);
}

TEST_F(RunLogTest, OnePlaceIsOneFindingHoweverManyLaunches) {
  const auto race = finding(FindingKind::shared_race, "k.cu:7");
  const auto bounds = finding(FindingKind::out_of_bounds, "k.cu:7");
  log_.launch(record("a", 0, {race, race, bounds}));
  log_.launch(record("a", 0, {race, race}));
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.findings.size(), 3u);  // two races in one line appear twice in every launch
  EXPECT_EQ(s.findings[0].count, 2u);
  EXPECT_EQ(s.findings[1].count, 2u);
  EXPECT_EQ(s.findings[2].count, 1u);
}

TEST_F(RunLogTest, FindingsOfNoLaunch) {
  log_.finding(finding(FindingKind::uninitialised, "k.cu:3"));
  log_.launch(record("a", 1));
  log_.finding(finding(FindingKind::uninitialised, "k.cu:3"));
  const RunSummary s = summarise(written());
  ASSERT_EQ(s.findings.size(), 1u);
  EXPECT_EQ(s.findings[0].where, "k.cu:3");
  EXPECT_EQ(s.findings[0].count, 2u);
  EXPECT_EQ(s.kernels.size(), 1u);
}

TEST_F(RunLogTest, NotesAndRefusals) {
  log_.unsupported("x");
  log_.unsupported("x");
  log_.note("n");
  log_.not_loaded("why");
  const RunSummary s = summarise(written());
  EXPECT_THAT(s.unsupported, ElementsAre("x"));
  EXPECT_THAT(s.notes, ElementsAre("n"));
  EXPECT_EQ(s.not_loaded, "why");
}

// A killed program leaves an incomplete last record.
TEST_F(RunLogTest, ALogCutOffAnywhereGivesWhatCameBefore) {
  log_.launch(record("a", 1));
  const std::size_t first = written().size();
  LaunchRecord second = record("b", 2, {finding(FindingKind::trap, "k.cu:1")});
  second.replays = {{"k.cu:7", 5}};
  log_.launch(second);
  const std::string all = written();
  for (std::size_t size = 0; size < all.size(); ++size) {
    const RunSummary s = summarise(std::string_view(all).substr(0, size));
    EXPECT_EQ(s.kernels.size(), size >= first ? 1u : 0u) << size;
  }
}

TEST_F(RunLogTest, AnyBytesAreAccepted) {
  LaunchRecord whole = record("kernel", 1, {finding(FindingKind::trap, "k.cu:1")});
  whole.replays = {{"k.cu:7", 5}};
  log_.launch(whole);
  const std::string good = written();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(0xff);
    summarise(bad);
  }
}

}  // namespace
}  // namespace assay::sim
