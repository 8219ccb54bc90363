#include "processes/memory_watch.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "processes/channel.h"
#include "processes/memory_figures.h"
#include "util/pass_descriptor.h"
#include "worker/seal.h"

namespace assay::processes {
namespace {

constexpr std::size_t kPool = std::size_t{3} << 20;

// A watched child that runs `act` when told to, and then waits to be killed.
class Watched {
 public:
  template <class Act>
  explicit Watched(Act act) {
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      if (!pass_descriptor(line_.theirs(), worker::watch_memory())) ::_exit(1);
      tell();
      char go;
      if (::read(go_.read.get(), &go, 1) != 1) ::_exit(2);
      act();
      tell();
      for (;;) ::pause();
    }
    char told;
    EXPECT_EQ(::read(told_.read.get(), &told, 1), 1);
    if (Fd listener = take_descriptor(line_.ours())) watch_.emplace(child_, std::move(listener));
  }
  ~Watched() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  bool attached() const { return watch_.has_value(); }
  // The peak growth, once the child has run `act`.
  std::uint64_t growth() {
    const Resident before = exact_resident(child_).value_or(Resident{});
    EXPECT_EQ(::write(go_.write.get(), "g", 1), 1);
    for (;;) {
      pollfd entries[] = {{watch_->fd(), POLLIN, 0}, {told_.read.get(), POLLIN, 0}};
      if (::poll(entries, 2, 30'000) <= 0) {
        ADD_FAILURE() << "it waits for somebody";
        return 0;
      }
      if (entries[0].revents != 0) watch_->serve();
      if (entries[1].revents == 0) continue;
      const Resident& most = watch_->peak();
      // All that the children take is anonymous.
      EXPECT_GE(most.anonymous, before.anonymous + kPool);
      return most.sum - std::min(most.sum, before.sum);
    }
  }

 private:
  void tell() const {
    if (::write(told_.write.get(), "t", 1) != 1) ::_exit(3);
  }

  Channel line_;
  Pipe told_ = make_pipe(), go_ = make_pipe();
  pid_t child_ = -1;
  std::optional<MemoryWatch> watch_;
};

char* touched(std::size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(p, 1, bytes);
  return static_cast<char*>(p);
}

class MemoryWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!MemoryWatch::works()) GTEST_SKIP() << "the kernel hands over no system calls here";
  }

  // Exact to the page, except for pages of this program that the child touches: the kernel maps
  // sixteen of them at a time.
  template <class Act>
  void expect_seen(Act act) {
    Watched child(act);
    ASSERT_TRUE(child.attached());
    const std::uint64_t growth = child.growth();
    EXPECT_GE(growth, kPool);
    EXPECT_LT(growth, kPool + (512 << 10));
  }
};

TEST_F(MemoryWatchTest, SeesWhatIsUnmapped) {
  expect_seen([] { ::munmap(touched(kPool), kPool); });
}

TEST_F(MemoryWatchTest, SeesWhatIsMappedOver) {
  expect_seen([] {
    (void)::mmap(touched(kPool), kPool, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  });
}

TEST_F(MemoryWatchTest, SeesWhatIsMadeSmaller) {
  expect_seen([] { ::mremap(touched(kPool), kPool, 4096, 0); });
}

TEST_F(MemoryWatchTest, SeesWhatIsAdvisedAway) {
  expect_seen([] { ::madvise(touched(kPool), kPool, MADV_DONTNEED); });
}

TEST_F(MemoryWatchTest, SeesAHeapThatShrinks) {
  expect_seen([] {
    void* p = ::sbrk(kPool);
    std::memset(p, 1, kPool);
    ::sbrk(-static_cast<std::intptr_t>(kPool));
  });
}

TEST_F(MemoryWatchTest, CountsThePeakAndNotTheSum) {
  expect_seen([] {
    for (int i = 0; i < 5; ++i) ::munmap(touched(kPool), kPool);
  });
}

}  // namespace
}  // namespace assay::processes
