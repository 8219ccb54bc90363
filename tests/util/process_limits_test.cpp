#include "util/process_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <vector>

#include "support/child_process.h"
#include "support/error_of.h"
#include "util/remedy.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

template <class Action>
int status_of(Action action) {
  return testing::ChildProcess([&](testing::ChildProcess&) { action(); }).wait();
}

void limit_open_files(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(7);
}

TEST(ProcessLimits, TheSoftLimitIsRaised) {
  EXPECT_EQ(status_of([] {
              limit_open_files(16, 512);
              raise_open_files(512);
              rlimit now{};
              ::getrlimit(RLIMIT_NOFILE, &now);
              if (now.rlim_cur != 512) ::_exit(9);
            }),
            0);
}

TEST(ProcessLimits, TooLowAHardLimitIsSaidWithItsRemedy) {
  EXPECT_EQ(status_of([] {
              limit_open_files(16, 100);
              const std::string error = testing::error_of([] { raise_open_files(200); });
              if (error.find("may open 100 files") == std::string::npos ||
                  error.find("ulimit -n 800") == std::string::npos)
                ::_exit(9);
            }),
            0);
}

TEST(ProcessLimits, ClosedStandardFilesAreOpenedToNothing) {
  EXPECT_EQ(status_of([] {
              ::close(STDOUT_FILENO);
              open_standard_files();
              const int next = ::open("/dev/null", O_RDONLY);
              if (::fcntl(STDOUT_FILENO, F_GETFD) < 0 || next == STDOUT_FILENO) ::_exit(9);
            }),
            0);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The address of a block that has been freed again.
const char* freed_block(std::size_t bytes) {
  const std::vector<char> block(bytes);
  return block.data();
}

bool is_mapped(const char* address) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const char* begin = address - reinterpret_cast<std::uintptr_t>(address) % page;
  unsigned char resident = 0;
  return ::mincore(const_cast<char*>(begin), page, &resident) == 0;
}

TEST(ProcessLimits, AFreedBlockGoesBackAlsoAfterALargerOne) {
  EXPECT_EQ(status_of([] {
              give_back_freed_memory();
              freed_block(std::size_t{16} << 20);
              if (is_mapped(freed_block(std::size_t{4} << 20))) ::_exit(9);
            }),
            0);
}
#endif

TEST(Remedy, IsNamedWhereThereIsOne) {
  EXPECT_THAT(remedy(ENOSPC), HasSubstr("make room"));
  EXPECT_THAT(remedy(EROFS), HasSubstr("read-only"));
  EXPECT_STREQ(remedy(ENOENT), "");
}

}  // namespace
}  // namespace assay
