#include "processes/memory_figures.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "assay/error.h"

namespace assay::processes {
namespace {

constexpr const char* kStatus =
    "Name:\tworker VmHWM: 1 kB\nVmHWM:\t    8000 kB\nVmRSS:\t    7000 kB\nRssAnon:\t     100 kB\n"
    "RssFile:\t    6000 kB\nRssShmem:\t     900 kB\n";

TEST(MemoryFigures, AreBytes) {
  const MemoryFigures figures = parse_memory_figures(kStatus);
  EXPECT_EQ(figures.peak, 8000u * 1024);
  EXPECT_EQ(figures.anonymous, 100u * 1024);
  EXPECT_EQ(figures.sum(), 7000u * 1024);
}

TEST(MemoryFigures, OneThatIsMissingIsNoZero) {
  for (const char* name : {"VmHWM:\t", "RssAnon", "RssFile", "RssShmem"}) {
    std::string status = kStatus;
    status.erase(status.find(name), std::strlen(name));
    EXPECT_THROW(parse_memory_figures(status), Error) << name;
  }
  EXPECT_THROW(parse_memory_figures(""), Error);
  EXPECT_THROW(memory_figures(-1), Error);
  EXPECT_THROW(reset_memory_peak(-1), Error);
}

TEST(MemoryFigures, AreTheKernels) {
  constexpr std::size_t kBytes = 64 << 20;
  reset_memory_peak(::getpid());
  const MemoryFigures before = memory_figures(::getpid());
  void* p = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  std::memset(p, 1, kBytes);
  ::munmap(p, kBytes);
  const MemoryFigures after = memory_figures(::getpid());
  EXPECT_GT(after.peak, before.sum() + kBytes * 9 / 10) << "what came and went";
  EXPECT_LT(after.anonymous, before.anonymous + kBytes / 2);
}

TEST(MemoryFigures, AreExactPageByPage) {
  const auto before = exact_resident(::getpid());
  if (!before) GTEST_SKIP() << "no smaps_rollup here";
  constexpr std::size_t kBytes = 20 * 4096;
  void* p = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  std::memset(p, 1, kBytes);
  EXPECT_GE(*exact_resident(::getpid()), *before + kBytes);
  ::munmap(p, kBytes);
  EXPECT_FALSE(exact_resident(-1));
}

}  // namespace
}  // namespace assay::processes
