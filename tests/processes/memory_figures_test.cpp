#include "processes/memory_figures.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"
#include "util/fd.h"

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
  const auto after = exact_resident(::getpid());
  EXPECT_GE(after->sum, before->sum + kBytes);
  EXPECT_GE(after->anonymous, before->anonymous + kBytes);
  EXPECT_LE(after->anonymous, after->sum);
  ::munmap(p, kBytes);
  EXPECT_FALSE(exact_resident(-1));
}

TEST(MemoryFigures, APageOfAFileThatIsWrittenBecomesAnonymous) {
  constexpr std::size_t kPages = 64, kPage = 4096;
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.path / "pages";
  std::ofstream(file) << std::string(kPages * kPage, 'x');
  const Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  void* p = ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, opened.get(), 0);
  ASSERT_NE(p, MAP_FAILED);
  const auto touch = [&](bool write) {
    for (std::size_t i = 0; i < kPages; ++i) {
      volatile char& c = static_cast<volatile char*>(p)[i * kPage];
      const char read = c;
      if (write) c = read;
    }
  };
  touch(false);
  const auto before = exact_resident(::getpid());
  if (!before) GTEST_SKIP() << "no smaps_rollup here";
  touch(true);
  const auto after = exact_resident(::getpid());
  EXPECT_GE(after->anonymous, before->anonymous + kPages * kPage);
  EXPECT_LT(after->sum, before->sum + kPages * kPage / 2);
  ::munmap(p, kPages * kPage);
}

// The sum of a child's page tables, exact while no thread runs in it.
std::uint64_t resident_by_its_tables(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(in, line);) {
    std::uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "Rss: %" SCNu64, &kib) == 1) return kib * 1024;
  }
  return 0;
}

TEST(MemoryFigures, CountersThatPassForExactAgreeWithTheTablesOfPages) {
  if (!counters_are_exact()) GTEST_SKIP() << "this kernel counts for each core";
  constexpr std::size_t kPages = 301, kPage = 4096;
  const auto take = [] {
    void* p =
        ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(p)[i * kPage] = 1;
    return p;
  };
  testing::ChildProcess child([&](testing::ChildProcess& self) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ::munmap(take(), kPages * kPage);
        take();
      });
    }
    for (std::thread& thread : threads) thread.join();
    self.signal();
    ::pause();
  });
  ASSERT_TRUE(child.wait_for_signal());
  const std::uint64_t by_tables = resident_by_its_tables(child.pid());
  if (by_tables == 0) GTEST_SKIP() << "no smaps_rollup here";
  EXPECT_GT(by_tables, 4 * kPages * kPage);
  EXPECT_EQ(exact_resident(child.pid())->sum, by_tables);
}

}  // namespace
}  // namespace assay::processes
