#include "worker/seal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "util/pass_descriptor.h"

namespace assay::worker {
namespace {

constexpr std::size_t kPage = 4096;

void* map(int flags) {
  return ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

// The result of `act` in a sealed process; -1 if it could not be sealed.
template <class Act>
int when_sealed(Act act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::_exit(seal() ? act() : 255);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

int refused(bool failed) { return failed && errno == EPERM ? 1 : 0; }

TEST(Seal, RefusesMemoryThatCanBeShared) {
  EXPECT_EQ(when_sealed([] { return refused(map(MAP_SHARED) == MAP_FAILED); }), 1);
  EXPECT_EQ(when_sealed([] { return refused(map(MAP_SHARED_VALIDATE) == MAP_FAILED); }), 1);
}

TEST(Seal, RefusesASecondMappingOfWhatWasSharedBefore) {
  void* before = map(MAP_SHARED);
  ASSERT_NE(before, MAP_FAILED);
  EXPECT_EQ(when_sealed(
                [&] { return refused(::mremap(before, 0, kPage, MREMAP_MAYMOVE) == MAP_FAILED); }),
            1);
  ::munmap(before, kPage);
}

TEST(Seal, RefusesToPassAnOpenFile) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_TRUE(pass_descriptor(ends[0], ends[0]));
  EXPECT_TRUE(take_descriptor(ends[1]));
  EXPECT_EQ(when_sealed([&] { return refused(!pass_descriptor(ends[0], ends[0])); }), 1);
  EXPECT_FALSE(take_descriptor(ends[1]));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Seal, RefusesFurtherFilters) {
  EXPECT_EQ(when_sealed([] { return refused(!seal()); }), 1);
}

TEST(Seal, LetsPrivateMemoryBeMappedMovedAndGivenBack) {
  EXPECT_EQ(when_sealed([] {
              void* p = map(MAP_PRIVATE);
              if (p == MAP_FAILED) return 2;
              p = ::mremap(p, kPage, 64 * kPage, MREMAP_MAYMOVE);
              if (p == MAP_FAILED) return 3;
              return ::munmap(p, 64 * kPage) == 0 ? 1 : 4;
            }),
            1);
}

}  // namespace
}  // namespace assay::worker
